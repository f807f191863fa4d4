// SPDX-License-Identifier: Apache-2.0
// Another program's run in the store, live (core/import/external_run.h). The calling thread's; callbacks on it, too.
#pragma once
#include <stop_token>
#include <string>
#include <vector>

#include "core/import/external_run.h"
#include "core/store/run_outcome.h"

namespace mw::importing {

struct WatchRequest {
  std::vector<std::string> command;  // program and arguments, as execvp takes them
  std::filesystem::path runs_folder;
  std::string name{};
};

// Starts the command in a process group of its own. A stop asks it to end (SIGTERM), then ends it after 10 s. Its exit
// code decides where it sent no Finished. Throws Error PROCESS where it cannot be started, before a run exists.
store::RunOutcome watch(const WatchRequest& request, const EventSink& sink, const OnLine& on_line,
                        std::stop_token stop);

}  // namespace mw::importing
