// SPDX-License-Identifier: GPL-3.0-or-later
// `plan`: predicts memory, time and cost. For the target cpu, memory is the engine's own exact prediction.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/planning/memory_fixes.h"
#include "core/planning/planning.h"
#include "core/planning/predict.h"

namespace mw::app {
namespace {

struct PlanOptions {
  std::string target;               // id that replaces the experiment's
  std::filesystem::path against{};  // another experiment to compare with
};

Json cpu_diagnostics(const experiment::Experiment& experiment, const planning::Prediction& prediction,
                     const plan::PlanContext& context) {
  Json all = Json::array();
  const auto add = [&](const Problem& problem) {
    all.push_back({{"id", problem.id},
                   {"severity", to_string(problem.severity)},
                   {"message", to_text(problem)},
                   {"fix", problem.fix}});
  };
  for (const Problem& problem : experiment.validate()) add(problem);
  for (const Problem& note : prediction.notes) add(note);
  for (const planning::Diagnostic& d : planning::diagnostics(experiment, context).beyond_the_document())
    all.push_back(to_json(d));
  if (!prediction.fits()) all.push_back(to_json(planning::memory_diagnostic(experiment, prediction, context)));
  return all;
}

Json cpu_plan_json(const experiment::Experiment& experiment, const planning::Prediction& prediction,
                   const plan::PlanContext& context) {
  const Json memory = planning::predicted_json(prediction)["memory"];
  const Json unknown = nullptr;
  Json step{{"seconds", unknown}, {"compute_s", unknown}, {"memory_s", unknown}, {"communication_s", unknown}};
  Json run{{"steps", prediction.steps ? Json(*prediction.steps) : unknown},
           {"hours", unknown},
           {"usd", unknown},
           {"tokens_per_second", unknown},
           {"padded_tokens_per_second", unknown},
           {"usd_per_million_tokens", unknown}};
  if (prediction.plan) {
    const plan::RunTotals& totals = prediction.plan->run;
    step = planning::step_json(prediction.plan->step);
    run["tokens_per_second"] = totals.tokens_per_second;
    run["padded_tokens_per_second"] = totals.padded_tokens_per_second;
    if (prediction.steps) run["hours"] = totals.hours.value;
    if (totals.usd_per_hour > 0) {
      if (prediction.steps) run["usd"] = totals.usd.value;
      run["usd_per_million_tokens"] = totals.usd_per_million_tokens;
    }
  }
  const Json each = memory.contains("devices") ? memory["devices"] : Json::array({memory});
  Json devices = Json::array();
  for (const Json& ledger : each)
    devices.push_back({{"id", devices.size()}, {"capacity_bytes", prediction.capacity.value}, {"memory", ledger}});
  return {{"target", prediction.target},
          {"mesh", mesh::to_text(prediction.mesh)},
          {"fits", prediction.fits()},
          {"devices", std::move(devices)},
          {"step", std::move(step)},
          {"run", std::move(run)},
          {"trainable", prediction.trainable ? to_json(*prediction.trainable) : unknown},
          {"peak_instant", prediction.peak_instant},
          {"diagnostics", cpu_diagnostics(experiment, prediction, context)},
          {"sources", prediction.sources}};
}

std::string time_text(const planning::Prediction& prediction) {
  const plan::Plan& plan = *prediction.plan;
  const plan::Estimate &step = plan.step.seconds, &hours = plan.run.hours;
  const auto duration = [](double h) { return to_text(Seconds(h * 3600)); };
  std::string out = "  time: " + number_text(step.value, 3) + " s a step (" + number_text(step.low, 3) + " to " +
                    number_text(step.high, 3) + "), " + number_text(plan.run.tokens_per_second) + " tokens/s";
  if (prediction.steps)
    out += "; " + count_text(static_cast<double>(*prediction.steps)) + " steps in " + duration(hours.value) + " (" +
           duration(hours.low) + " to " + duration(hours.high) + ")";
  return out + "\n";
}

void print_cpu_plan(const experiment::Experiment& experiment, const planning::Prediction& prediction,
                    const plan::PlanContext& context) {
  const std::vector<std::string> devices = planning::device_lines(prediction);
  print_text("target %s: %s, predicted peak %s of %s%s at %s\n", prediction.target.c_str(),
             prediction.fits() ? "fits" : "does not fit", to_text(prediction.at_peak.total()).c_str(),
             to_text(prediction.capacity).c_str(),
             devices.empty() ? "" : (" on the fullest of " + std::to_string(devices.size()) + " devices").c_str(),
             prediction.peak_instant.c_str());
  for (const MemoryCategory category : all_values<MemoryCategory>())
    if (prediction.at_peak[category].value > 0)
      print_text("  %-12s %s\n", std::string(to_string(category)).c_str(),
                 to_text(prediction.at_peak[category]).c_str());
  for (const std::string& device : devices) print_text("  %s\n", device.c_str());
  if (prediction.trainable)
    print_text("  trained: %s, saved in %s\n", to_text(*prediction.trainable).c_str(),
               to_text(prediction.trainable->file).c_str());
  if (prediction.plan) print_text("%s", time_text(prediction).c_str());
  for (const std::string& source : prediction.sources) print_text("  from: %s\n", source.c_str());
  for (const Json& diagnostic : cpu_diagnostics(experiment, prediction, context))
    print_text("%s %s: %s\n", diagnostic["severity"].get<std::string>().c_str(),
               diagnostic["id"].get<std::string>().c_str(), diagnostic["message"].get<std::string>().c_str());
}

int plan_cpu(const CommonOptions& common, const experiment::Experiment& experiment, const plan::PlanContext& context) {
  const planning::Prediction prediction = planning::predict(experiment, planning::ReadData::yes, context, common.stop);
  if (common.output == Output::json)
    print_json(cpu_plan_json(experiment, prediction, context));
  else
    print_cpu_plan(experiment, prediction, context);
  return 0;
}

int plan_accelerator(const CommonOptions& common, const PlanOptions& options, const experiment::Experiment& experiment,
                     const plan::PlanContext& context, std::optional<planning::CarriedAssumptions> carried) {
  planning::ExperimentPlan planned = planning::plan_experiment(experiment, context);
  planned.carried = std::move(carried);
  std::optional<planning::PlanComparison> against;
  if (!options.against.empty())
    against =
        planning::against(planned, planning::plan_experiment(experiment::Experiment::load(options.against), context));
  if (common.output == Output::json) {
    Json out = planning::planned_json(planned);
    if (against) out["against"] = planning::against_json(*against);
    print_json(out);
  } else {
    print_text("%s", planning::planned_text(planned).c_str());
    if (against) print_text("%s", planning::against_text(*against).c_str());
  }
  return 0;
}

void add_plan_options(CLI::App& command, CommonOptions& common, PlanOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--target", options.target, "Plan for this target instead: v5p-8, v6e-8, 2xh100, cpu ...");
  command.add_option("--against", options.against, "Experiment whose plan is compared with this one");
}

int run_plan(const CommonOptions& common, const PlanOptions& options) {
  experiment::Experiment experiment = load_experiment(common);
  const plan::PlanContext context = load_context();
  std::optional<planning::CarriedAssumptions> carried;
  if (!options.target.empty() && options.target != experiment.value("target.id")) {
    const experiment::Experiment document = experiment;
    planning::retarget(experiment, options.target, context);
    carried = planning::carried_assumptions(document, experiment, context);
  }
  return planning::planned_elsewhere(experiment) ? plan_accelerator(common, options, experiment, context, carried)
                                                 : plan_cpu(common, experiment, context);
}

}  // namespace

Subcommand plan_subcommand() {
  return make_subcommand("plan", "Predict memory, time and cost of an experiment on its target", add_plan_options,
                         run_plan);
}

}  // namespace mw::app
