// SPDX-License-Identifier: Apache-2.0
// An experiment as settings of TRL, PEFT and Accelerate: the direction opposite to recipe.h. Thread-safe.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"

namespace mw::port {

// Maps settings of TRL, PEFT and Accelerate to the keys of an experiment, and back. Thread-safe.

// A setting with the same meaning and unit on both sides: a row of the parameter table with a name in TRL.
struct PlainSetting {
  std::string_view call;  // where TRL and PEFT take it: "SFTConfig", "LoraConfig"
  std::string_view name;  // "learning_rate"
  std::string_view key;   // "train.learning_rate"
};
std::span<const PlainSetting> plain_settings();
// Also for older and other spellings: max_seq_length, lora_r. Null if no row has the name.
const PlainSetting* find_plain_setting(std::string_view name);

// Why an experiment has no key for this setting.
std::string missing_reason(std::string_view section, std::string_view name);

// "google/gemma-3-12b-it" gives "gemma3-12b"; empty if the catalogue has no such model.
std::string catalogue_model(std::string_view hub_name);

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
