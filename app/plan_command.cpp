// SPDX-License-Identifier: GPL-3.0-or-later
// `plan`: predicts memory, time and cost.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/plan/experiment/experiment_plan.h"

namespace mw::app {
namespace {

struct PlanOptions {
  std::string target;               // id that replaces the experiment's
  std::filesystem::path against{};  // another experiment to compare with
};

void add_plan_options(CLI::App& command, CommonOptions& common, PlanOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--target", options.target, "Plan for this target instead: v5p-8, v6e-8, 2xh100, cpu ...");
  command.add_option("--against", options.against, "Experiment whose plan is compared with this one");
}

int run_plan(const CommonOptions& common, const PlanOptions& options) {
  experiment::Experiment experiment = load_experiment(common);
  const plan::PlanContext context = load_context();
  std::optional<plan::CarriedAssumptions> carried;
  if (!options.target.empty() && options.target != experiment.value("target.id")) {
    const experiment::Experiment document = experiment;
    plan::retarget(experiment, options.target, context);
    carried = plan::carried_assumptions(document, experiment, context);
  }
  plan::ExperimentPlan planned = plan::plan_experiment(experiment, context, plan::ReadData::yes, common.stop);
  planned.carried = std::move(carried);
  std::optional<plan::PlanComparison> against;
  if (!options.against.empty())
    against = plan::against(planned, plan::plan_experiment(experiment::Experiment::load(options.against), context,
                                                           plan::ReadData::yes, common.stop));
  check_stop(common, "the plan");  // not all of its fixes were looked for
  if (common.output == Output::json) {
    Json out = plan::planned_json(planned);
    if (against) out["against"] = plan::against_json(*against);
    print_json(out);
  } else {
    print_text("%s", plan::planned_text(planned).c_str());
    if (against) print_text("%s", plan::against_text(*against).c_str());
  }
  return 0;
}

}  // namespace

Subcommand plan_subcommand() {
  return make_subcommand("plan", "Predict memory, time and cost of an experiment on its target", add_plan_options,
                         run_plan);
}

}  // namespace mw::app
