// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the meshwright binary with arguments; returns the exit code and both output streams.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace mw::test {

struct Result {
  int exit_code = -1;  // 128 + signal when killed
  std::string out, err;
};

struct Limits {
  long file_bytes = 0;        // RLIMIT_FSIZE, which simulates a full disk; 0: no limit
  int stop_after_ms = 0;      // SIGTERM after so long without output; 0: none
  bool unprivileged = false;  // runs as an unprivileged user if the tests run as root
};

// on_line receives every line of standard output when it arrives, and the process id, to send signals.
using OnLine = std::function<void(pid_t, const std::string&)>;

Result meshwright(const std::vector<std::string>& arguments, const OnLine& on_line = {}, Limits limits = {});

}  // namespace mw::test
