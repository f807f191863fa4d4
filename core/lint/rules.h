// SPDX-License-Identifier: Apache-2.0
// The checker's rules, one function per family of mistakes, and helpers for their conditions. Internal to core/lint.
#pragma once
#include "core/lint/check.h"

namespace mw::lint {

std::vector<CheckRule> lora_rules();  // COV, SCALE, VARIANT, REMAT
std::vector<CheckRule> peft_rules();
std::vector<CheckRule> mesh_rules();    // TP, FSDP, MESH, SHARD-1, BATCH, RANK, WRAP, NET
std::vector<CheckRule> spec_rules();    // SPEC, SHARD-2 to SHARD-4
std::vector<CheckRule> load_rules();    // VER, DTYPE, LOAD
std::vector<CheckRule> export_rules();  // EXP
std::vector<CheckRule> text_rules();    // TOK, PAD, LOGITS
std::vector<CheckRule> server_rules();  // SERVE

inline const std::vector<model::Stack> kAllStacks{};  // CheckRule::stacks of rules that apply to every stack

// Compares dotted versions by their numbers and returns -1, 0 or 1; ignores suffixes: "0.1.8+33" equals "0.1.8".
int compare_versions(std::string_view a, std::string_view b);
// A question that the version of a package answers.
struct VersionQuestion {
  const char *package, *limit;
  const char* text;  // "whether alpha is divided by the rank"
};
// Whether the package's version in stack.versions is older than `limit`. Reports the rule as unchecked, and returns
// false, if the version is not given.
bool is_older(const CheckInput& input, const VersionQuestion& question, const RuleReport& report);
Edit set_version(const CheckInput& input, const std::string& package, std::string_view version);
Edit set_model_field(const CheckInput& input, const std::string& field, const std::string& value);

Edit set_overrides(const std::vector<mesh::ShardingRule>& rules);

std::vector<mesh::AdapterShape> adapter_shapes(const CheckInput& input);
mesh::ShardingUse use_of(const CheckInput& input);
mesh::Placement place_with(const CheckInput& input, const mesh::ShardingRules& rules);

// Values that several rules derive from one input, each computed when it is first read.
struct Coverage;
struct DerivedInput {
  std::shared_ptr<const mesh::Placement> placement{};
  std::optional<std::vector<mesh::SizeConstraint>> needs{};
  std::optional<std::shared_ptr<const Coverage>> coverage{};
};
std::shared_ptr<const mesh::Placement> placement_of(const CheckInput& input);  // with the rules of the input
std::vector<mesh::SizeConstraint> needs_of(const CheckInput& input);

bool trains_lora(const CheckInput& input);
bool key_equals_value(const model::Layer& layer);  // V is the K projection before its norm
bool has_key_equals_value(const model::Config& config);

}  // namespace mw::lint
