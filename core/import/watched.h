// SPDX-License-Identifier: Apache-2.0
// Runs another program and records its output live (core/import/external_run.h). Callbacks run on the calling thread.
#pragma once
#include <stop_token>
#include <string>
#include <vector>

#include "core/import/external_run.h"

namespace mw::importing {

struct WatchRequest {
  std::vector<std::string> command;  // program and arguments for execvp
  std::filesystem::path runs_folder;
  std::string name{};
};

// Starts the command in its own process group and records it until it ends. A stop sends SIGTERM, and SIGKILL after
// 10 s. Without a Finished event, the exit code decides the state. Throws PROCESS, without creating a run, if the
// command cannot be started.
store::RunOutcome watch(const WatchRequest& request, const EventSink& sink, const OnLine& on_line,
                        std::stop_token stop);

}  // namespace mw::importing
