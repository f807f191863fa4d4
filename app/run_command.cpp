// SPDX-License-Identifier: GPL-3.0-or-later
// `run`: trains in the engine on this machine, or with --prove compares a mesh's steps with those of one device.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/jobs/job.h"
#include "core/jobs/prove.h"

namespace mw::app {
namespace {

struct RunOptions {
  std::string resume;  // run id
  bool prove = false;
  long prove_steps = 3;
};

void print_result(const event::Finished& f, const store::RunId& run) {
  print_text("%s %s: %s, %s in %s, peak %s\n", run.c_str(), std::string(to_string(f.state)).c_str(),
             counted(f.steps, "step").c_str(), counted(count_text(static_cast<double>(f.tokens)), "token").c_str(),
             to_text(Seconds(f.seconds)).c_str(), to_text(f.peak).c_str());
  if (f.summary.is_object() && f.summary.contains("answers")) {
    const Json& a = f.summary["answers"];
    print_text("held-out prompts answered correctly: base %ld of %ld, tuned %ld of %ld\n", a.value("base_right", 0L),
               a.value("asked", 0L), a.value("tuned_right", 0L), a.value("asked", 0L));
  }
  if (const std::string decided = views::outcome_text(f); !decided.empty()) print_text("%s\n", decided.c_str());
}

// Prints the mean traffic of a step between the devices of a mesh.
void print_traffic(const views::TrafficTimeline& traffic) {
  if (traffic.empty()) return;
  const auto steps = static_cast<double>(traffic.points.size());
  views::TrafficTotals sum;
  for (const views::TrafficPoint& point : traffic.points) {
    const views::TrafficTotals flow = views::sum(point);
    sum.bytes += flow.bytes, sum.seconds += flow.seconds, sum.waited += flow.waited;
  }
  print_text("%zu devices exchanged %s per step; each spent %s per step in collectives, %s of it waiting\n",
             traffic.points.front().devices.size(),
             to_text(Bytes(static_cast<std::int64_t>(sum.bytes / steps))).c_str(),
             to_text(Seconds(sum.seconds / steps)).c_str(), to_text(Seconds(sum.waited / steps)).c_str());
}

int prove(const CommonOptions& common, const RunOptions& options) {
  const experiment::Experiment experiment = load_experiment(common);
  ProgressLine line;
  const jobs::MeshProof proof = jobs::prove(
      experiment,
      {.steps = options.prove_steps,
       .progress = [&](const std::string& phase, long done,
                       long total) { line.update(phase + " " + std::to_string(done) + "/" + std::to_string(total)); }},
      common.stop);
  line.clear();
  print_answer(common, to_json(proof), to_text(proof));
  return proof.holds() ? 0 : 1;
}

int train(const CommonOptions& common, const RunOptions& options) {
  jobs::JobRequest request{.experiment = {}, .runs_folder = common.runs_folder, .resume = std::nullopt};
  request.context = plan::load_once(load_context);
  request.hardware_folder = measured_folder(common);
  if (options.resume.empty()) {
    request.experiment = load_experiment(common);
  } else {
    request.resume = run_named(store::Store(common.runs_folder), options.resume);
    request.resume_sets = common.sets;
  }
  store::RunId run;
  request.on_run = [&](const store::RunId& id) { run = id; };
  RunProgressPrinter progress;
  const EventSink sink = [&](const Event& event) {
    progress.feed(event);
    if (common.output == Output::json) print_json_line(to_json(event, run));
  };
  const auto [finished, error] = jobs::run_blocking(request, sink, common.stop);
  if (common.output == Output::text) {
    print_result(finished, run);
    print_traffic(progress.view().traffic());
  }
  return exit_code(finished.state, error);
}

void add_run_options(CLI::App& command, CommonOptions& common, RunOptions& options) {
  add_file_and_set_options(command, common, "Experiment file", FileArgument::optional);
  command.add_option("--resume", options.resume, "Continue this run from its last checkpoint");
  command.add_flag("--prove", options.prove,
                   "Run the same steps on this mesh and on one device, and compare every tensor");
  command.add_option("--prove-steps", options.prove_steps, "Number of steps that --prove compares")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

int run_experiment(const CommonOptions& common, const RunOptions& options) {
  if (common.file.empty() && (options.resume.empty() || options.prove))
    throw Error("USAGE", "run needs an experiment file or --resume RUN",
                {.fix = "for example: meshwright run " + example_file("tiny-lora.json").string()});
  return options.prove ? prove(common, options) : train(common, options);
}

}  // namespace

Subcommand run_subcommand() {
  return make_subcommand("run", "Train in the engine on this machine", add_run_options, run_experiment);
}

}  // namespace mw::app
