// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/planning/planning.h"
#include "core/planning/predict.h"

namespace mw::app {
namespace {

Json diagnostics(const experiment::Experiment& experiment, const planning::Prediction& p,
                 const hardware::Catalogue& catalogue) {
  Json all = Json::array();
  const auto add = [&](const Problem& problem) {
    all.push_back({{"id", problem.id},
                   {"severity", to_string(problem.severity)},
                   {"message", to_text(problem)},
                   {"fix", problem.fix}});
  };
  for (const Problem& problem : experiment.validate()) add(problem);
  for (const Problem& note : p.notes) add(note);
  for (const planning::Diagnostic& d : planning::diagnostics(experiment, catalogue).beyond_the_document())
    all.push_back(to_json(d));
  if (!p.fits())
    add({.id = "MEMORY",
         .message = p.devices.size() > 1 ? "the run does not fit its devices" : "the run does not fit",
         .found = to_text(p.at_peak.total()),
         .expected = "at most " + to_text(p.capacity),
         .fix = std::string("lower train.batch or data.max_len, use train.remat=layer, or train.dtype=bf16") +
                (p.devices.size() > 1 ? ", or more devices along fsdp or tp" : "")});
  return all;
}

Json answer(const experiment::Experiment& experiment, const planning::Prediction& p,
            const hardware::Catalogue& catalogue) {
  const Json memory = planning::predicted_json(p)["memory"];
  const Json nothing = nullptr;  // this version predicts memory; times and costs are unknown, not zero
  const Json each = memory.contains("devices") ? memory["devices"] : Json::array({memory});
  Json devices = Json::array();
  for (const Json& ledger : each)
    devices.push_back({{"id", devices.size()}, {"capacity_bytes", p.capacity.value}, {"memory", ledger}});
  return {{"target", p.target},
          {"mesh", mesh::to_text(p.mesh)},
          {"fits", p.fits()},
          {"devices", std::move(devices)},
          {"step", {{"seconds", nothing}, {"compute_s", nothing}, {"memory_s", nothing}, {"communication_s", nothing}}},
          {"run",
           {{"steps", p.steps ? Json(*p.steps) : nothing},
            {"hours", nothing},
            {"usd", nothing},
            {"tokens_per_second", nothing},
            {"padded_tokens_per_second", nothing},
            {"usd_per_million_tokens", nothing}}},
          {"peak_instant", p.peak_instant},
          {"diagnostics", diagnostics(experiment, p, catalogue)},
          {"sources", p.sources}};
}

// Another machine, another planner.
int plan_elsewhere(const Common& common, const PlanArgs& args, const experiment::Experiment& experiment,
                   const hardware::Catalogue& catalogue) {
  const planning::ExperimentPlan planned = planning::plan_experiment(experiment, catalogue);
  std::optional<planning::PlanComparison> against;
  if (!args.against.empty())
    against =
        planning::against(planned, planning::plan_experiment(experiment::Experiment::load(args.against), catalogue));
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

}  // namespace

int plan_command(const Common& common, const PlanArgs& args) {
  experiment::Experiment experiment = load_experiment(common);
  const hardware::Catalogue catalogue = load_catalogue();
  if (!args.target.empty()) planning::retarget(experiment, args.target, catalogue);
  if (planning::planned_elsewhere(experiment)) return plan_elsewhere(common, args, experiment, catalogue);
  const planning::Prediction p = planning::predict(experiment, planning::ReadData::yes, common.stop);
  if (common.output == Output::json) {
    print_json(answer(experiment, p, catalogue));
    return 0;
  }
  const std::vector<std::string> each = planning::device_lines(p);
  print_text("target %s: %s, predicted peak %s of %s%s at %s\n", p.target.c_str(), p.fits() ? "fits" : "does not fit",
             to_text(p.at_peak.total()).c_str(), to_text(p.capacity).c_str(),
             each.empty() ? "" : (" on the fullest of " + std::to_string(each.size()) + " devices").c_str(),
             p.peak_instant.c_str());
  for (size_t i = 0; i < kMemoryCategories; ++i)
    if (p.at_peak.bytes[i].value > 0)
      print_text("  %-12s %s\n", std::string(to_string(static_cast<MemoryCategory>(i))).c_str(),
                 to_text(p.at_peak.bytes[i]).c_str());
  for (const std::string& device : each) print_text("  %s\n", device.c_str());
  for (const std::string& source : p.sources) print_text("  from: %s\n", source.c_str());
  for (const Json& d : diagnostics(experiment, p, catalogue))
    print_text("%s %s: %s\n", d["severity"].get<std::string>().c_str(), d["id"].get<std::string>().c_str(),
               d["message"].get<std::string>().c_str());
  return 0;
}

}  // namespace mw::app
