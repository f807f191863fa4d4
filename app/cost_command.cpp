// SPDX-License-Identifier: GPL-3.0-or-later
// `cost`: total cost of training and serving, for three price classes, and break-even with another experiment.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/experiment/parameters.h"
#include "core/plan/experiment/costing.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

struct CostOptions {
  std::filesystem::path against{};
  std::string run, against_run;  // runs whose hours of training are used
};

std::optional<plan::TrainedFor> trained_for(const CommonOptions& common, const std::string& run) {
  if (run.empty()) return std::nullopt;
  const store::Store store(common.runs_folder);
  const auto row = store.find(run_named(store, run));
  if (!row) throw unknown_run(store.folder(), run, "a run id listed by `runs`, or latest");
  return plan::TrainedFor{row->seconds / 3600, row->id};
}

plan::CostPlan cost_of(const CommonOptions& common, const experiment::Experiment& experiment,
                       const plan::PlanContext& context, const std::string& run) {
  auto cost = plan::cost_plan(experiment, context, trained_for(common, run), nullptr, common.stop);
  check_stop(common, "the cost");
  if (cost) return *std::move(cost);
  const bool loaded = experiment.config().cost.requests_per_day > 0;
  throw Error(
      "COST",
      loaded ? "the experiment does not say where it is served" : "the experiment does not say how much is served",
      {.place = loaded ? "serve.target" : "cost.requests_per_day",
       .expected = loaded ? "the target that serves what was trained" : "requests per day above 0",
       .fix = loaded ? "--set serve.target=v6e-8" : "--set cost.requests_per_day=10000"});
}

// The served load and its service level, which are the same for both experiments.
void take_load(const experiment::Experiment& from, experiment::Experiment& to) {
  for (const experiment::Parameter& p : experiment::parameters())
    if (p.key.starts_with("cost.") || p.key.starts_with("sweep.slo_") || p.key == "serve.input_len" ||
        p.key == "serve.output_len")
      if (const Json* value = from.find(p.key)) to.set_value(p.key, *value);
}

void add_cost_options(CLI::App& command, CommonOptions& common, CostOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--against", options.against, "Experiment whose cost is compared, for the same requests");
  command.add_option("--run", options.run, "Run of the store, or latest, whose time is the time of training");
  command.add_option("--against-run", options.against_run, "The same for the other experiment");
}

int run_cost(const CommonOptions& common, const CostOptions& options) {
  const plan::PlanContext context = load_context();
  const plan::CostPlan cost = cost_of(common, load_experiment(common), context, options.run);
  std::optional<plan::CostPlan> other;
  if (!options.against.empty()) {
    experiment::Experiment experiment = experiment::Experiment::load(options.against);
    if (!experiment.has("cost.requests_per_day")) take_load(load_experiment(common), experiment);
    other = cost_of(common, experiment, context, options.against_run);
  }
  if (common.output == Output::json) {
    Json out = to_json(cost);
    if (other) out["against"] = {{"cost", to_json(*other)}, {"break_even", to_json(plan::break_even(cost, *other))}};
    print_json(out);
    return 0;
  }
  print_text("%s", to_text(cost).c_str());
  if (other) print_text("\n%s\n%s\n", to_text(*other).c_str(), plan::break_even_text(cost, *other).c_str());
  return 0;
}

}  // namespace

Subcommand cost_subcommand() {
  return make_subcommand("cost", "Total cost of training and serving, and what moves it", add_cost_options, run_cost);
}

}  // namespace mw::app
