// SPDX-License-Identifier: Apache-2.0
// The one parameter table: form fields, tooltips, --set, --help, validation and defaults are all generated from it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::experiment {

enum class ParamType { integer, number, text, choice, flag, path, list, map };
enum class Level { basic, advanced };  // the form folds advanced ones

struct Parameter {
  std::string key;    // dotted: "train.learning_rate"; "mesh.*" stands for any axis
  std::string group;  // form section: Model, Target, Mesh, LoRA, Data, Training, ...
  std::string label;  // sentence case, no unit
  ParamType type = ParamType::text;
  std::string unit{};  // "tokens", "steps", "" where none
  Json fallback{};     // the default
  std::optional<double> min{}, max{};
  std::vector<std::string> choices{};
  std::string help{};  // one line
  Level level = Level::basic;
};

std::span<const Parameter> parameters();
const Parameter* find_parameter(std::string_view key);  // resolves mesh.<axis> to mesh.*
// The nearest key, for "did you mean".
std::string nearest_key(std::string_view key);
std::string range_text(const Parameter& parameter);  // "1 to 4096 tokens", "one of none, block, layer"

}  // namespace mw::experiment
