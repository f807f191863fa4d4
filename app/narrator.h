// SPDX-License-Identifier: GPL-3.0-or-later
// What a person at a terminal sees of a run's events, on standard error.
#pragma once
#include "app/progress_line.h"
#include "core/views/run_view.h"

namespace mw::app {

class Narrator {
 public:
  void tell(const Event& event);
  const views::RunView& view() const { return view_; }
  void clear() { line_.clear(); }

 private:
  void metric(const event::Metric& m);
  void progress(const event::Progress& p);
  ProgressLine line_;
  views::RunView view_;
  double loss_ = 0, speed_ = 0;
};

}  // namespace mw::app
