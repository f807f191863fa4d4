// SPDX-License-Identifier: GPL-3.0-or-later
// `watch -- COMMAND...`, `watch --follow SOURCE`: records the events of another program in the run store.
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/import/follow.h"

namespace mw::app {
namespace {

struct WatchOptions {
  std::vector<std::string> command;
  std::string name, follow;
  double idle_s = 0;
};

void add_watch_options(CLI::App& command, CommonOptions&, WatchOptions& options) {
  command.add_option("--name", options.name, "Name of the run");
  command.add_option(
      "--follow", options.follow,
      "Record what a running program writes: a file or pipe of event lines (- for standard input), an "
      "http URL of them, /metrics of a vLLM server, or a log folder of W&B, TensorBoard or transformers");
  command.add_option("--idle", options.idle_s, "With --follow: end the record after so many seconds without news")
      ->check(CLI::NonNegativeNumber);
  command.add_option("command", options.command, "Program that prints event lines, and its arguments");
  command.positionals_at_end();
}

int run_watch(const CommonOptions& common, const WatchOptions& options) {
  store::RunId run;
  const EventSink sink = [&](const Event& event) {
    if (const auto* started = std::get_if<event::Started>(&event.body)) run = started->info.value("run", run);
    if (common.output == Output::json)
      print_json_line(to_json(event, run));
    else if (const auto* metric = std::get_if<event::Metric>(&event.body))
      print_text("step %ld  %s %s\n", metric->step, metric->name.c_str(), number_text(metric->value).c_str());
  };
  const importing::OnLine on_line = [&](const std::string& line) { print_error("%s\n", line.c_str()); };
  if (!options.follow.empty() && !options.command.empty())
    throw Error("USAGE", "--follow and a command cannot be used together",
                {.fix = "start the program yourself, or leave out --follow"});
  const auto [finished, error] =
      options.follow.empty()
          ? importing::watch({.command = options.command, .runs_folder = common.runs_folder, .name = options.name},
                             sink, on_line, common.stop)
          : importing::follow({.source = options.follow,
                               .runs_folder = common.runs_folder,
                               .name = options.name,
                               .idle_s = options.idle_s},
                              sink, on_line, common.stop);
  if (common.output == Output::text) print_external_result(run, finished);
  return exit_code(finished.state);
}

}  // namespace

Subcommand watch_subcommand() {
  return make_subcommand("watch", "Record the run of another program: watch -- COMMAND..., watch --follow SOURCE",
                         add_watch_options, run_watch);
}

}  // namespace mw::app
