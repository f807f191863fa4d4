// SPDX-License-Identifier: Apache-2.0
// The parameter table. Form fields, tooltips, --set, --help, validation and defaults are generated from it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::experiment {

enum class ParamType { integer, number, text, choice, flag, path, list, map };
enum class Level { basic, advanced };  // the form hides advanced parameters by default

struct Parameter {
  std::string key;    // dotted: "train.learning_rate"; "mesh.*" matches any axis
  std::string group;  // form section: Model, Target, Mesh, LoRA, Data, Training, ...
  std::string label;  // sentence case, no unit
  ParamType type = ParamType::text;
  std::string unit{};  // "tokens", "steps"; empty if dimensionless
  Json fallback{};     // default value
  std::optional<double> min{}, max{};
  std::vector<std::string> choices{};
  std::string help{};  // one line, shown as tooltip and in the manual
  Level level = Level::basic;
};

std::span<const Parameter> parameters();
const Parameter* find_parameter(std::string_view key);  // null if unknown; mesh.<axis> resolves to mesh.*
// Returns the known key with the smallest edit distance, for "did you mean".
std::string nearest_key(std::string_view key);
std::string range_text(const Parameter& parameter);  // "1 to 4096 tokens", "one of none, block, layer"

}  // namespace mw::experiment
