// SPDX-License-Identifier: GPL-3.0-or-later
// What the store tests share: a folder that goes away, and child processes.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include "core/base/error.h"
#include "core/store/store.h"
#include "tests/base/instrumented.h"
#include "tests/base/random_events.h"
#include "tests/base/scratch.h"

namespace mw::test {

// Runs `work` in a forked child, which exits with its result (99 on an exception).
inline pid_t fork_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    ::_exit(work());
  } catch (const std::exception& e) {
    ::dprintf(2, "child: %s\n", e.what());
    ::_exit(99);
  }
}

inline int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// The id of the Error that `work` throws, "" when none.
inline std::string error_id(const std::function<void()>& work, std::string* text = nullptr) {
  try {
    work();
    return "";
  } catch (const Error& e) {
    if (text) *text = e.what();
    return e.problem().id;
  }
}

inline Event metric(long step, double value, const char* name = "train/loss") {
  return {static_cast<double>(step), event::Metric{name, step, value}};
}

}  // namespace mw::test
