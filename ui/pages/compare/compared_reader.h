// SPDX-License-Identifier: GPL-3.0-or-later
// Reads runs and result files for the tray in parallel and delivers them in the order of the requests. GUI thread.
#pragma once
#include <QObject>
#include <deque>

#include "core/compare/comparison.h"
#include "ui/session/background_task.h"

namespace mw::ui {

class ComparedReader : public QObject {
  Q_OBJECT
 public:
  struct Folders {
    std::filesystem::path runs, results, hardware, own_hardware;  // results: shipped results
  };
  explicit ComparedReader(Folders folders) : folders_(std::move(folders)) {}
  void read_run(const store::RunId& run);
  void read_file(const std::filesystem::path& file);  // reads every set in the file
  void forget() { tasks_.clear(); }                   // drops the tasks in progress with their results
  int pending() const { return static_cast<int>(tasks_.size()); }
  const Folders& folders() const { return folders_; }

 signals:
  void read(std::vector<compare::ComparedRun>& runs);  // moves from `runs`
  void problem(const mw::Problem& problem);
  void settled();  // emitted after each of the above

 private:
  using Task = BackgroundTask<std::vector<compare::ComparedRun>>;
  void start(Task::Work work);
  void deliver();
  Folders folders_;
  std::deque<std::unique_ptr<Task>> tasks_;  // in the order of the requests
};

}  // namespace mw::ui
