// SPDX-License-Identifier: GPL-3.0-or-later
// Signals as a stop_token: Ctrl-C, SIGTERM, SIGHUP (the terminal was closed) and SIGPIPE (nobody reads the output any
// more) stop cleanly; a second Ctrl-C or SIGTERM ends the process. One object at a time.
#pragma once
#include <stop_token>
#include <thread>

namespace mw::app {

// A file that reaches the size limit of the process (ulimit -f) becomes an error of the write, instead of the end of
// the process.
void survive_file_size_limit();

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace mw::app
