// SPDX-License-Identifier: Apache-2.0
// Targets and models to choose from, with the figures that decide. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/hardware/catalogue.h"

namespace mw::views {

struct TargetChoice {
  std::string id, chip;
  int chips = 0, devices = 0;
  Bytes memory;                        // available to a program, per device
  std::optional<double> usd_per_hour;  // of all chips, on demand; empty: the price list has none
};
std::vector<TargetChoice> target_choices(const hardware::Catalogue& catalogue);

struct ModelChoice {
  std::string id, family;
  std::int64_t parameters = 0;
  bool planning_only = false;  // the engine does not run the model
  // Of the experiment with this model on its target; predicted. Empty: there is no prediction, see `reason`.
  std::optional<bool> fits{};
  Bytes memory{};  // peak of the fullest device
  std::string reason{};
};
std::vector<ModelChoice> model_choices();
// Fills in the prediction for the model: on this machine with every row at its maximum length.
void predict_fit(ModelChoice& choice, experiment::Experiment experiment, const hardware::Catalogue& catalogue);

}  // namespace mw::views
