// SPDX-License-Identifier: Apache-2.0
// Records a run that another program is making, from what it writes: a growing file or a pipe of event lines, a URL
// that sends them, the metrics of a vLLM server, or the log folder of W&B, TensorBoard or transformers. Callbacks run
// on the calling thread.
#pragma once
#include <stop_token>
#include <string>
#include <vector>

#include "core/import/external_run.h"

namespace mw::importing {

struct FollowRequest {
  std::string source;  // path, "-" for standard input, or http://...; a URL ending in /metrics is a vLLM server
  std::filesystem::path runs_folder;
  std::string name{};
  double poll_s = 0.5;  // pause between two looks at the source
  double idle_s = 0;    // end the record after so long without anything new; 0: only at the end of the run or a stop
};

// Follows until the run has ended, the source has ended, or a stop. What the source already holds is recorded first.
// The record is `done` if the source says so, or if it can't and was idle; `cancelled` after a stop; otherwise `failed`
// with the reason. Throws FOLLOW, without creating a run, if the source does not exist or has another format.
store::RunOutcome follow(const FollowRequest& request, const EventSink& sink, const OnLine& on_line,
                         const std::stop_token& stop);

// Runs another program and records its output live (core/import/external_run.h). Callbacks run on the calling thread.
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
