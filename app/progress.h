// SPDX-License-Identifier: GPL-3.0-or-later
// Progress on standard error.
#pragma once
#include <chrono>
#include <string>

#include "core/views/run_view.h"

namespace mw::app {

// One line that is updated in place on a terminal, else a plain line every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  void update(const std::string& text);   // rate-limited
  void message(const std::string& text);  // prints a line that stays above the progress line
  void clear();                           // call before printing to the terminal by other means

 private:
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

// Prints the progress of a run while its events arrive.
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
