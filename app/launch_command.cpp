// SPDX-License-Identifier: GPL-3.0-or-later
// `launch`: a recipe elsewhere, its run here. Ctrl-C leaves the job alone; --cancel ends it.
#include <cmath>
#include <cstdio>

#include "app/commands.h"
#include "app/narrator.h"
#include "core/launch/launch.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

// How to come back to a run whose job goes on, or may.
void say_how(const Common& common, const store::RunId& run) {
  std::string again = "meshwright launch";
  if (common.runs_folder != store::default_folder()) again += " --runs-dir " + common.runs_folder.string();
  print_error("follow it again:  %s --reattach %s\nend the job:      %s --cancel %s\n", again.c_str(), run.c_str(),
              again.c_str(), run.c_str());
}

launch::Timing timing_of(const LaunchArgs& args) {
  launch::Timing timing;
  timing.give_up = std::chrono::milliseconds(std::llround(std::min(args.patience_s, 1e9) * 1000));
  return timing;
}

void require(const std::string& value, const char* option) {
  if (value.empty())
    throw Error({.id = "USAGE",
                 .message = std::string("launch needs ") + option,
                 .fix = "for example: meshwright launch my.json --recipe tunix --on ssh:HOST"});
}

launch::Request request_of(const Common& common, const LaunchArgs& args) {
  require(common.file.string(), "an experiment file");
  require(args.recipe, "--recipe");
  require(args.on, "--on");
  const fs::path resources = MW_RESOURCES;
  launch::Request request{.experiment = {},
                          .recipe = recipes::recipe_kind(args.recipe),
                          .target = launch::parse_target(args.on, resources / "launch"),
                          .command = args.command,
                          .folder = args.folder,
                          .use = args.force ? launch::Folder::forced : launch::Folder::fresh,
                          .fetch = args.fetch,
                          .runs_folder = common.runs_folder,
                          .resources = resources,
                          .timing = timing_of(args)};
  if (!args.ssh_config.empty()) request.target.ssh_config = fs::absolute(args.ssh_config);
  request.experiment = load_experiment(common);
  return request;
}

int summarise(const Common& common, const launch::Launched& launched) {
  if (!launched.finished) {
    print_error("%s goes on without this program\n", launched.run.c_str());
    say_how(common, launched.run);
    return 130;
  }
  const event::Finished& f = *launched.finished;
  if (common.output == Output::text) {
    print_text("%s %s: %ld steps in %s%s%s\n", launched.run.c_str(), std::string(to_string(f.state)).c_str(), f.steps,
               to_text(Seconds(f.seconds)).c_str(), f.error.empty() ? "" : "; ", f.error.c_str());
    for (const auto& [key, what] : {std::pair("merge", "to add the adapter to its base model"),
                                    {"import", "to have the results in the run store"}})
      if (f.summary.is_object() && f.summary.contains(key))
        print_text("%s:\n    %s\n", what, f.summary[key].get<std::string>().c_str());
  }
  return f.state == RunState::done ? 0 : f.state == RunState::cancelled ? 130 : 1;
}

}  // namespace

int launch_command(const Common& common, const LaunchArgs& args) {
  const std::string& again = args.reattach.empty() ? args.cancel.empty() ? args.forget : args.cancel : args.reattach;
  const launch::Again open{
      .run = again, .runs_folder = common.runs_folder, .resources = MW_RESOURCES, .timing = timing_of(args)};
  if (!args.forget.empty()) {
    launch::give_up(open);
    print_text("%s: its record has ended\n", again.c_str());
    return 0;
  }
  store::RunId run = again;
  Narrator narrator;
  const EventSink sink = [&](const Event& event) {
    if (const auto* s = std::get_if<event::Started>(&event.body)) run = s->info.value("run", run);
    narrator.tell(event);
    if (common.output == Output::json) print_json_line(to_json(event, run));
  };
  std::stop_source cancel;
  if (!args.cancel.empty()) cancel.request_stop();
  const launch::Stops stops{.detach = common.stop, .cancel = cancel.get_token()};
  const importing::OnLine on_line = [](const std::string&) {};  // the narrator says what is in the record
  try {
    const launch::Launched launched =
        again.empty() ? launch::launch(request_of(common, args), load_catalogue(), sink, on_line, stops)
                      : launch::reattach(open, sink, on_line, stops);
    narrator.clear();
    return summarise(common, launched);
  } catch (const Error& error) {
    narrator.clear();
    // Only a job that may go on leaves its run open.
    if (!run.empty() && error.kind() == Error::Kind::failed) say_how(common, run);
    throw;
  }
}

}  // namespace mw::app
