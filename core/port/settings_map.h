// SPDX-License-Identifier: Apache-2.0
// Which settings of TRL, PEFT and Accelerate correspond to which keys of an experiment. Thread-safe.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace mw::port {

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

}  // namespace mw::port
