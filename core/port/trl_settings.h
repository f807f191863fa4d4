// SPDX-License-Identifier: Apache-2.0
// An experiment as settings of TRL, PEFT and Accelerate: the direction opposite to recipe.h. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"

namespace mw::port {

struct TrlSetting {
  std::string call;  // "SFTConfig", "LoraConfig", "from_pretrained"; "accelerate": the configuration of Accelerate
  std::string name;
  Json value;
  std::string key;  // of the experiment
};
struct UnmatchedKey {
  std::string key;
  Json value;
  std::string reason;
};
struct TrlSettings {
  std::vector<TrlSetting> settings;
  std::vector<UnmatchedKey> without_counterpart;  // keys that the experiment sets
  std::string script;                             // Python with literal arguments
  std::string accelerate;                         // YAML
};

// Throws Error for an invalid experiment, a target or a model that is not known.
TrlSettings trl_settings(const experiment::Experiment& experiment, const plan::PlanContext& context);

}  // namespace mw::port
