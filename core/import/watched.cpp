// SPDX-License-Identifier: Apache-2.0
#include "core/import/watched.h"

#include <signal.h>

#include <chrono>
#include <optional>

#include "core/base/elapsed.h"
#include "core/base/process.h"
#include "core/base/text.h"

namespace mw::importing {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr auto kPatience = 10s;

// Reads both streams until they end; a stop terminates the process group, after a delay by force.
void follow(Process& child, ExternalRun& run, Clock::time_point start, const std::stop_token& stop) {
  const auto at = [&](const LineSplitter& lines) {
    return ExternalRun::At{seconds_since(start), {}, lines.dropped_bytes()};
  };
  LineSplitter out_lines, err_lines;
  const auto to_out = [&](const std::string& line) { run.line(line, at(out_lines)); };
  const auto to_err = [&](const std::string& line) { run.log_output(line, at(err_lines)); };
  const Process::Streams streams{.out = [&](std::string_view bytes) { out_lines.feed(bytes, to_out); },
                                 .err = [&](std::string_view bytes) { err_lines.feed(bytes, to_err); }};
  std::optional<Clock::time_point> stopped_at;
  do {
    if (stop.stop_requested() && !stopped_at) {
      child.kill(SIGTERM);
      stopped_at = Clock::now();
    } else if (stopped_at && Clock::now() - *stopped_at > kPatience) {
      child.kill(SIGKILL);
    }
  } while (child.transfer(streams, 100ms));
  out_lines.finish(to_out);
  err_lines.finish(to_err);
}

experiment::Experiment document_of(const WatchRequest& request) {
  experiment::Experiment e;
  e.set_value("name", request.name.empty() ? valid_utf8(request.command.front()) : request.name);
  e.set_value("note", valid_utf8("watched: " + joined(request.command, " ")));
  return e;
}

}  // namespace

store::RunOutcome watch(const WatchRequest& request, const EventSink& sink, const OnLine& on_line,
                        std::stop_token stop) {
  if (request.command.empty())
    throw Error({.id = "USAGE",
                 .message = "the command is missing",
                 .fix = "for example: meshwright watch -- python train.py"});
  store::Store store(request.runs_folder);
  Process child(request.command,
                Process::Input::inherited);  // before creating the run, so that a failed start leaves no run
  const store::RunId id = store.create(document_of(request), request.name);
  const auto lock = store.lock(id);
  ExternalRun run(store, id, sink, on_line);
  const auto start = Clock::now();
  run.record({0, event::Started{{{"source", "imported"}, {"run", id}, {"command", request.command}}}});
  follow(child, run, start, stop);
  const int exit_code = child.wait();
  const RunState state = stop.stop_requested() ? RunState::cancelled
                         : exit_code == 0      ? RunState::done
                                               : RunState::failed;
  const event::Finished finished = run.finish(
      state,
      state == RunState::failed ? "the command ended with exit code " + std::to_string(exit_code) : std::string(),
      {seconds_since(start)});
  const bool failed = finished.state == RunState::failed;
  return {finished, failed ? std::optional(Error::Kind::failed) : std::nullopt};
}

}  // namespace mw::importing
