// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "app/output.h"

namespace mw::app {

using namespace std::chrono_literals;

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void ProgressLine::update(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? 100ms : 5000ms)) return;
  last_ = now;
  if (!terminal_) {
    print_error("%s\n", text.c_str());
    return;
  }
  clear();
  print_error("%s", text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::message(const std::string& text) {
  clear();
  print_error("%s\n", text.c_str());
}

}  // namespace mw::app
