// SPDX-License-Identifier: Apache-2.0
// Targets and models to choose from, with the figures that decide. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/import/found_models.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/request/estimate.h"

namespace mw::views {

struct TargetChoice {
  std::string id, chip;
  int chips = 0, devices = 0;
  Bytes memory;                        // available to a program, per device
  std::optional<double> usd_per_hour;  // of all chips, on demand; empty: the price list has none
};
std::vector<TargetChoice> target_choices(const plan::PlanContext& context);

struct ModelChoice {
  std::string id, family;
  std::int64_t parameters = 0;
  bool planning_only = false;  // the engine does not run the model
  // Prediction for the experiment with this model on its target. Empty: there is no prediction, see `reason`.
  std::optional<bool> fits{};
  Bytes memory{};  // peak of the fullest device
  std::string reason{};
};
std::vector<ModelChoice> model_choices();
// Fills in the prediction for the model: on this machine with every row at its maximum length.
void predict_fit(ModelChoice& choice, experiment::Experiment experiment, const plan::PlanContext& context);

// A folder that was found, with the prediction for serving it on this machine: one request at a time of kHereTokens
// tokens, prompt and answer.
inline constexpr int kHerePrompt = 512, kHereAnswer = 128, kHereTokens = kHerePrompt + kHereAnswer;
struct FoundChoice {
  importing::FoundModel model;
  std::optional<bool> fits{};                         // empty: there is no prediction, see `reason`
  Bytes memory{};                                     // peak; 0: does not fit
  std::optional<plan::Estimate> tokens_per_second{};  // of the answer
  std::string weights{};                              // type that the prediction is for: "bf16"
  std::string reason{};
};
// In the type of the folder's tensors, if the engine serves it, unless the experiment sets another. `experiment`: its
// threads and memory limit of this machine apply, too.
FoundChoice predict_here(importing::FoundModel model, const experiment::Experiment& experiment,
                         const plan::PlanContext& context);
// {"path", "place", "kind", "name", "family", "dtype", "parameters", "bytes", "predicted": {"fits", "peak_bytes",
// "tokens_per_second", "tokens_per_second_low", "tokens_per_second_high", "dtype"} or null, "reason"}
Json to_json(const FoundChoice& choice);

}  // namespace mw::views
