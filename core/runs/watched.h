// SPDX-License-Identifier: Apache-2.0
// Another program's run in the store, live: its event lines (contract.md) are appended and handed on as they come,
// everything else it prints is a log line. The calling thread's; callbacks on it, too.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/runs/job.h"

namespace mw::runs {

struct WatchRequest {
  std::vector<std::string> command;  // program and arguments, as execvp takes them
  std::filesystem::path runs_folder;
  std::string name{};
};

// A line of its standard output that is no event, or of its standard error.
using OnLine = std::function<void(const std::string& line)>;

// Starts the command in a process group of its own. A stop asks it to end (SIGTERM), then ends it after 10 s. Its exit
// code decides where it sent no Finished. Throws Error WATCH where it cannot be started, before a run exists.
Outcome watch(const WatchRequest& request, const EventSink& sink, const OnLine& on_line, std::stop_token stop);

// The events of a line: none where it is not one JSON object with an event's name. Others' spelling errors throw
// nothing: a line that is nearly an event is a line.
std::optional<Event> event_of_line(const std::string& line);

}  // namespace mw::runs
