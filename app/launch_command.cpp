// SPDX-License-Identifier: GPL-3.0-or-later
// `launch`: runs a recipe on another machine and records its events in the run store. Ctrl-C detaches from the job,
// --cancel ends it.
#include <CLI/CLI.hpp>
#include <cmath>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/launch/launch.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct LaunchOptions {
  std::string recipe, on, command, folder;
  std::vector<std::string> fetch{};
  fs::path ssh_config{};
  bool force = false;
  std::string reattach, cancel, forget;  // run ids; at most one is given, and then no experiment
  double patience_s = 1800;              // without a connection
};

// Prints the commands for a run whose job may still be running.
void print_reattach_commands(const CommonOptions& common, const store::RunId& run) {
  std::string launch = "meshwright launch";
  if (common.runs_folder != store::default_folder()) launch += " --runs-dir " + common.runs_folder.string();
  print_error("to reattach:     %s --reattach %s\nto end the job:  %s --cancel %s\n", launch.c_str(), run.c_str(),
              launch.c_str(), run.c_str());
}

launch::Timing launch_timing(const LaunchOptions& options) {
  launch::Timing timing;
  timing.give_up = std::chrono::milliseconds(std::llround(std::min(options.patience_s, 1e9) * 1000));
  return timing;
}

void require_given(const std::string& value, const char* option) {
  if (value.empty())
    throw Error("USAGE", std::string("launch needs ") + option,
                {.fix = "for example: meshwright launch my.json --recipe tunix --on ssh:HOST"});
}

launch::LaunchRequest launch_request(const CommonOptions& common, const LaunchOptions& options) {
  require_given(common.file.string(), "an experiment file");
  require_given(options.recipe, "--recipe");
  require_given(options.on, "--on");
  const fs::path resources = resources_folder();
  launch::LaunchRequest request{.experiment = {},
                                .recipe = recipes::parse_recipe(options.recipe),
                                .target = launch::parse_target(options.on, resources / "launch"),
                                .command = options.command,
                                .folder = options.folder,
                                .use = options.force ? launch::FolderUse::forced : launch::FolderUse::fresh,
                                .fetch = options.fetch,
                                .runs_folder = common.runs_folder,
                                .resources = resources,
                                .timing = launch_timing(options)};
  if (!options.ssh_config.empty()) request.target.ssh_config = fs::absolute(options.ssh_config);
  request.experiment = load_experiment(common);
  return request;
}

int summarise_launch(const CommonOptions& common, const launch::LaunchResult& launched) {
  if (!launched.finished) {
    print_error("detached from %s: its job keeps running\n", launched.run.c_str());
    print_reattach_commands(common, launched.run);
    return 130;
  }
  const event::Finished& f = *launched.finished;
  if (common.output == Output::text) {
    print_external_result(launched.run, f);
    for (const auto& [key, what] : {std::pair("merge", "to merge the adapter into its base model"),
                                    {"import", "to add the results to the run store"}})
      if (f.summary.is_object() && f.summary.contains(key))
        print_text("%s:\n    %s\n", what, f.summary[key].get<std::string>().c_str());
  }
  return exit_code(f.state);
}

void add_job_options(CLI::App& command, LaunchOptions& options) {
  command.add_option("--recipe", options.recipe, "tunix, torchax, trl-fsdp, vllm-tpu or vllm-gpu");
  command.add_option(
      "--on", options.on,
      "local, ssh:[USER@]HOST[:PORT], hosts:FILE (one of these on each line), "
      "slurm[:[USER@]HOST[:PORT]], skypilot[:CLUSTER], kubernetes[:NAMESPACE], gcloud-tpu:name=N,zone=Z[,workers=W], "
      "kubectl:pod=P,namespace=N, or a local "
      "shell command that runs {command} there (it is recorded with the run: no secrets in it)");
  command.add_option("--command", options.command,
                     "Command to start in the remote folder; default: ./launch.sh (hosts: on_hosts.py, slurm: "
                     "slurm.sh, skypilot: sky.sh, kubernetes: jobset.sh)");
  command.add_option("--dir", options.folder,
                     "Remote folder, relative to the home folder; default: a new one in meshwright/");
  command.add_flag("--force", options.force, "Use the remote folder even if it is not empty: training resumes from it");
  command.add_option("--fetch", options.fetch, "Path in the remote folder to fetch at the end (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--ssh-config", options.ssh_config, "Configuration file for ssh, instead of ~/.ssh/config")
      ->check(CLI::ExistingFile);
  command.add_option("--patience", options.patience_s, "Seconds without a connection before giving up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void add_launch_options(CLI::App& command, CommonOptions& common, LaunchOptions& options) {
  add_file_and_set_options(command, common, "Experiment file", FileArgument::optional);
  add_job_options(command, options);
  auto* reattach = command.add_option("--reattach", options.reattach, "Continue this run where its record stopped");
  auto* cancel = command.add_option("--cancel", options.cancel, "End the job of this run and fetch its results");
  command.add_option("--forget", options.forget, "Close the record of this run, whose job cannot be reached any more")
      ->excludes(reattach)
      ->excludes(cancel);
  reattach->excludes(cancel);
}

// Launches a job, or reattaches to the one of `open` if that names a run.
int follow_job(const CommonOptions& common, const LaunchOptions& options, const launch::ReattachRequest& open) {
  store::RunId run = open.run;
  RunProgressPrinter progress;
  const EventSink sink = [&](const Event& event) {
    if (const auto* started = std::get_if<event::Started>(&event.body)) run = started->info.value("run", run);
    progress.feed(event);
    if (common.output == Output::json) print_json_line(to_json(event, run));
  };
  std::stop_source cancel;
  if (!options.cancel.empty()) cancel.request_stop();
  const launch::StopTokens stops{.detach = common.stop, .cancel = cancel.get_token()};
  try {
    const launch::LaunchResult launched =
        open.run.empty() ? launch::launch(launch_request(common, options), load_context(), sink, stops)
                         : launch::reattach(open, sink, stops);
    progress.clear();
    return summarise_launch(common, launched);
  } catch (const Error& error) {
    progress.clear();
    // Other kinds of error close the run: its job has ended.
    if (!run.empty() && error.kind() == Error::Kind::failed) print_reattach_commands(common, run);
    throw;
  }
}

int run_launch(const CommonOptions& common, const LaunchOptions& options) {
  launch::ReattachRequest open{
      .run = {}, .runs_folder = common.runs_folder, .resources = resources_folder(), .timing = launch_timing(options)};
  for (const std::string& run : {options.reattach, options.cancel, options.forget})
    if (!run.empty()) open.run = run_named(store::Store(common.runs_folder), run);
  if (options.forget.empty()) return follow_job(common, options, open);
  launch::give_up(open);
  print_text("%s: record closed\n", open.run.c_str());
  return 0;
}

}  // namespace

Subcommand launch_subcommand() {
  return make_subcommand("launch", "Start an exported recipe on another machine, follow it and fetch its results",
                         add_launch_options, run_launch);
}

}  // namespace mw::app
