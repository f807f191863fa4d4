// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/progress_line.h"

#include <unistd.h>

#include <cstdio>

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
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  clear();
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::message(const std::string& text) {
  clear();
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace mw::app
