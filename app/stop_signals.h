// SPDX-License-Identifier: GPL-3.0-or-later
// Signal handling of the command line.
#pragma once
#include <stop_token>
#include <thread>

namespace mw::app {

// Makes a write beyond the file size limit of the process (ulimit -f) fail with an error instead of ending the process.
void survive_file_size_limit();

// Turns SIGINT (Ctrl-C), SIGTERM, SIGHUP (the terminal was closed) and SIGPIPE (the reader of the output is gone) into
// a stop request. A second SIGINT or SIGTERM ends the process. At most one object may exist at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace mw::app
