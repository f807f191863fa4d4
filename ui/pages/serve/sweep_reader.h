// SPDX-License-Identifier: GPL-3.0-or-later
// Builds the view of a sweep on a worker thread: reads every point once and repeats the audit. Also destroys old views
// there. GUI thread.
#pragma once
#include <mutex>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/jobs/sweep_run.h"
#include "ui/pages/serve/sweep_model.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

class SweepReader {
 public:
  explicit SweepReader(plan::LoadContext context);
  void show(RunPtr run);  // from the beginning; null: none
  void grow();            // reads new points
  bool is_busy() const { return requested_ != completed_; }
  SweepViewPtr drain();  // the newest view, once; null: none
  void discard(SweepViewPtr view);

 private:
  struct Input {  // data not yet taken by the worker thread
    bool from_start = false;
    Json info;
    std::vector<event::Point> points;
    std::vector<SweepViewPtr> discarded;
  };
  struct Result {
    std::uint64_t request = 0;
    SweepViewPtr view;
  };
  void send(Input input);
  void work(std::uint64_t request);

  plan::LoadContext load_context_;  // for the audit
  RunPtr run_;
  std::size_t sent_ = 0;                                     // points
  bool settings_sent_ = false;                               // its settings were known when it was sent
  std::uint64_t requested_ = 0, completed_ = 0, first_ = 0;  // first_: first request for this run
  std::mutex mutex_;
  Input input_;
  // Used by the worker thread only.
  std::optional<views::GrowingSweep> sweep_;
  Mailbox<Result> results_;
  LatestTaskWorker<std::uint64_t> worker_;  // last: it uses the other members
};

}  // namespace mw::ui
