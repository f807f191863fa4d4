// SPDX-License-Identifier: GPL-3.0-or-later
// Plays recorded requests again on another server, simulated, on a thread of its own: one replay at a time, with
// progress, cancelled by a word; what comes of it is a run of the store. GUI thread.
#pragma once
#include <QObject>
#include <thread>

#include "core/base/error.h"
#include "core/base/mailbox.h"
#include "core/compare/replay.h"
#include "core/jobs/sweep_run.h"

namespace mw::ui {

class Replayer : public QObject {
  Q_OBJECT
 public:
  Replayer(std::filesystem::path runs_folder, hardware::LoadCatalogue catalogue);
  void start(runs::Recording recording, runs::Experiment server);  // ignored while busy
  void cancel();
  void drain();
  bool busy() const { return thread_.joinable(); }
  bool cancelling() const { return thread_.get_stop_token().stop_requested(); }
  int percent() const { return percent_; }

 signals:
  void changed();                     // began, went on, ended
  void replayed(const QString& run);  // which it has become
  void failed(const mw::Problem& problem);

 private:
  struct Said {
    int percent = 0;
    bool last = false;
    runs::RunId run{};                 // empty: none
    std::optional<Problem> problem{};  // and none: cancelled
  };
  Said work(const runs::Recording& recording, const runs::Experiment& server, const std::stop_token& stop);

  std::filesystem::path runs_folder_;
  hardware::LoadCatalogue catalogue_;
  int percent_ = 0;
  Mailbox<Said> said_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw::ui
