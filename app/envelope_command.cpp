// SPDX-License-Identifier: GPL-3.0-or-later
// `envelope`: simulates the sweep on every mesh of the target and finds the best mesh at each load.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/jobs/sweep_envelope.h"

namespace mw::app {
namespace {

struct EnvelopeOptions {
  std::string metric = "p99_ttft";
};

void add_envelope_options(CLI::App& command, CommonOptions& common, EnvelopeOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--metric", options.metric, "Latency by which meshes are compared")
      ->check(CLI::IsMember({"median_ttft", "p99_ttft", "median_tpot", "p99_tpot", "median_e2el", "p99_e2el"}))
      ->capture_default_str();
}

int run_envelope(const CommonOptions& common, const EnvelopeOptions& options) {
  const experiment::Experiment experiment = load_experiment(common);
  const plan::PlanContext context = load_context();
  const auto metric = *parse<jobs::EnvelopeMetric>(options.metric);
  ProgressLine line;
  line.message(jobs::envelope_note(jobs::envelope_plan(experiment, context)));
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    line.update("simulating  " + std::to_string(100 * done / std::max<std::int64_t>(1, total)) + " %");
  };
  const jobs::EnvelopeRuns runs = jobs::simulate_envelope(experiment, context, progress, common.stop);
  line.clear();
  print_answer(common, jobs::envelope_json(runs, metric), jobs::envelope_text(runs, metric));
  return 0;
}

}  // namespace

Subcommand envelope_subcommand() {
  return make_subcommand("envelope", "Simulate the sweep on every mesh of the target and find the best at each load",
                         add_envelope_options, run_envelope);
}

}  // namespace mw::app
