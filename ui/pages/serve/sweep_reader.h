// SPDX-License-Identifier: GPL-3.0-or-later
// Makes what the page draws of a sweep, on a thread of its own: every point is read once, the audit is made anew. What
// is no longer drawn is taken apart there, too. GUI thread.
#pragma once
#include <memory>
#include <mutex>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/jobs/sweep_run.h"
#include "ui/pages/serve/sweep_model.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

class SweepReader {
 public:
  explicit SweepReader(hardware::LoadCatalogue catalogue);
  void show(RunPtr run);  // from its beginning; null: nothing
  void grow();            // what has come since
  bool busy() const { return asked_ != answered_; }
  SweepViewPtr drain();  // the newest, once; null: nothing new
  void discard(SweepViewPtr view);

 private:
  struct Parcel {  // what the thread has not taken yet
    bool anew = false;
    Json info;
    std::vector<event::Point> points;
    std::vector<SweepViewPtr> discarded;
  };
  struct Answer {
    std::uint64_t question = 0;
    SweepViewPtr view;
  };
  void send(Parcel parcel);
  void work(std::uint64_t question);

  hardware::LoadCatalogue load_catalogue_;
  RunPtr run_;
  std::size_t sent_ = 0;                                // points
  bool begun_ = false;                                  // its facts were there when it was sent
  std::uint64_t asked_ = 0, answered_ = 0, first_ = 0;  // first_: question about this run
  std::mutex mutex_;
  Parcel parcel_;
  // Of the thread.
  std::optional<views::GrowingSweep> sweep_;
  std::optional<hardware::Catalogue> catalogue_;  // to audit against, read for each run
  Mailbox<Answer> answers_;
  Newest<std::uint64_t> worker_;  // last: it uses the others
};

}  // namespace mw::ui
