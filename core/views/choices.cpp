// SPDX-License-Identifier: Apache-2.0
#include "core/views/choices.h"

#include "core/model/catalogue.h"
#include "core/model/inventory.h"
#include "core/planning/plan_request.h"
#include "core/planning/predict.h"

namespace mw::views {

std::vector<TargetChoice> target_choices(const hardware::Catalogue& catalogue) {
  std::vector<TargetChoice> out;
  for (const std::string& id : catalogue.target_ids()) {
    const hardware::Target target = catalogue.target(id);
    TargetChoice choice{.id = id,
                        .chip = target.chip.name,
                        .chips = target.chips(),
                        .devices = target.devices(),
                        .memory = Bytes(static_cast<std::int64_t>(target.chip.memory.value)),
                        .usd_per_hour = {}};
    if (const hardware::Price* price = catalogue.price(target.chip.id))
      choice.usd_per_hour = price->usd_per_chip_hour * choice.chips;
    out.push_back(std::move(choice));
  }
  return out;
}

std::vector<ModelChoice> model_choices() {
  std::vector<ModelChoice> out;
  for (const std::string& id : model::catalogue_ids()) {
    const model::Config config = model::catalogue_config(id);
    out.push_back({.id = id,
                   .family = id.substr(0, id.find('-')),
                   .parameters = model::TensorInventory(config).parameters(),
                   .planning_only = model::is_planning_only(config)});
  }
  return out;
}

void predict_fit(ModelChoice& choice, experiment::Experiment experiment, const hardware::Catalogue& catalogue) {
  experiment.erase("model.path");
  experiment.set_value("model.id", choice.id);
  try {
    if (planning::planned_elsewhere(experiment)) {
      const plan::Plan plan = plan::predict(planning::plan_request(experiment, catalogue));
      choice.fits = plan.fits();
      choice.memory = plan.memory.at_peak.total();
    } else {
      const planning::Prediction prediction = planning::predict(experiment, planning::ReadData::no);
      choice.fits = prediction.fits();
      choice.memory = prediction.at_peak.total();
    }
  } catch (const Error& error) {
    choice.reason = error.problem().message;
  }
}

}  // namespace mw::views
