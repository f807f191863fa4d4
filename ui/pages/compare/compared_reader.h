// SPDX-License-Identifier: GPL-3.0-or-later
// Reads runs and result files for the tray in parallel and delivers them in the order of the requests. GUI thread.
#pragma once
#include <QObject>
#include <deque>

#include "core/compare/comparison.h"
#include "core/plan/calibration/plan_context.h"
#include "ui/session/background_task.h"

namespace mw::ui {

class ComparedReader : public QObject {
  Q_OBJECT
 public:
  struct Folders {
    std::filesystem::path runs, results;  // results: shipped results
  };
  ComparedReader(Folders folders, plan::LoadContext context)
      : folders_(std::move(folders)), context_(std::move(context)) {}
  void read_run(const store::RunId& run);
  void read_file(const std::filesystem::path& file);  // reads every set in the file
  void forget() { tasks_.clear(); }                   // drops the tasks in progress with their results
  int pending() const { return static_cast<int>(tasks_.size()); }
  const Folders& folders() const { return folders_; }
  const plan::LoadContext& context() const { return context_; }

 signals:
  void read(std::vector<compare::ComparedRun>& runs);  // moves from `runs`
  void problem(const mw::Problem& problem);
  void settled();  // emitted after each of the above

 private:
  using Task = BackgroundTask<std::vector<compare::ComparedRun>>;
  void start(Task::Work work);
  void deliver();
  Folders folders_;
  plan::LoadContext context_;
  std::deque<std::unique_ptr<Task>> tasks_;  // in the order of the requests
};

}  // namespace mw::ui
