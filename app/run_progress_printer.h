// SPDX-License-Identifier: GPL-3.0-or-later
// Prints the progress of a run to standard error while its events arrive.
#pragma once
#include "app/progress_line.h"
#include "core/views/run_view.h"

namespace mw::app {

class RunProgressPrinter {
 public:
  void feed(const Event& event);
  const views::RunView& view() const { return view_; }
  void clear() { line_.clear(); }  // call before printing to the terminal by other means

 private:
  void print_metric(const event::Metric& metric);
  void print_progress(const event::Progress& progress);
  ProgressLine line_;
  views::RunView view_;
  double loss_ = 0, tokens_per_second_ = 0;
};

}  // namespace mw::app
