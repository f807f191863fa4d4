// SPDX-License-Identifier: Apache-2.0
// The parameter table. Form fields, tooltips, --set, --help, validation and defaults are generated from it. Relevance
// tells which parameters have an effect in an experiment, so that the form can leave out the others. Thread-safe.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/columns.h"
#include "core/experiment/experiment.h"

namespace mw::experiment {

struct BoundExperiment;

enum class ParamType { integer, number, text, choice, flag, path, list, map };
// Unit of a map of names to folders; other maps hold numbers.
inline constexpr const char* kFolders = "folders";
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
  Columns columns{};
  // Writes a value that check_value() accepts into its member of the configuration; relative paths are resolved against
  // `folder`. "mesh.*" takes the object of all axes.
  std::function<void(BoundExperiment&, const Json& value, const std::filesystem::path& folder)> store{};
};

std::span<const Parameter> parameters();
const Parameter* find_parameter(std::string_view key);  // null if unknown; mesh.<axis> resolves to mesh.*
// Returns the key that another program calls so, or whose last part is `key`, else the known key with the smallest edit
// distance, for "did you mean"; for a key without a dot, the nearest name of the top level: "modle" gives "model".
std::string nearest_key(std::string_view key);
// The parameter that another program calls `name`: "max_grad_norm", "lora_r", "--max-num-seqs"; null if no row has it.
const Parameter* find_peer_name(std::string_view name);
std::string range_text(const Parameter& parameter);  // "1 to 4096 tokens", "one of none, block, layer"
// Checks type (TYPE), range (RANGE) and choice (CHOICE). Empty if the value is valid. `key` is the place of the
// problem; its fix says what to enter: "enter a whole number from 1 to 4096".
std::optional<Problem> check_value(const Parameter& parameter, std::string_view key, const Json& value);

constexpr unsigned kind_bit(Kind kind) {
  return 1U << static_cast<unsigned>(kind);
}

struct Relevance {
  Kind kind = Kind::train;
  bool planned = false;                         // the target is not this machine
  bool adapters = true;                         // false: every weight is trained
  std::vector<std::string_view> not_offered{};  // unset options that the software lacks, so that a plan refuses them
  bool operator==(const Relevance&) const = default;
  bool concerns(const Parameter& parameter) const;
};

// For the experiment as if it were of this kind. Values of the wrong type count as unset. `stack`: what the experiment
// runs on if it does not name its software; empty: unknown, so that every option may be offered.
Relevance relevance(const Experiment& experiment, Kind kind, std::optional<model::Stack> stack = {});

}  // namespace mw::experiment
