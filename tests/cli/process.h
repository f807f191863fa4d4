// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the meshwright binary as a user's script would: arguments in, exit code and both streams out.
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
  long file_bytes = 0;        // RLIMIT_FSIZE, 0: none; how a disk that fills up looks to a process
  bool unprivileged = false;  // as a user who owns nothing, where the tests run as root
};

// on_line sees every line of standard output as it comes, with the process id: it may send signals.
using OnLine = std::function<void(pid_t, const std::string&)>;

Result meshwright(const std::vector<std::string>& arguments, const OnLine& on_line = {}, Limits limits = {});

}  // namespace mw::test
