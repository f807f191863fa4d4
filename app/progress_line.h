// SPDX-License-Identifier: GPL-3.0-or-later
// Progress on standard error: one line that is updated in place on a terminal, else a plain line every few seconds.
#pragma once
#include <chrono>
#include <string>

namespace mw::app {

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

}  // namespace mw::app
