// SPDX-License-Identifier: GPL-3.0-or-later
// Progress on standard error: one line that updates itself on a terminal, plain lines now and then elsewhere.
#pragma once
#include <chrono>
#include <string>

namespace mw::app {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  void update(const std::string& text);   // throttled
  void message(const std::string& text);  // stays; the progress line goes on below it
  void clear();                           // before something else is written to the terminal

 private:
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace mw::app
