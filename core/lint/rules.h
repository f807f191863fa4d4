// SPDX-License-Identifier: Apache-2.0
// What the checker's files share: the parts of the table and the helpers of its conditions.
#pragma once
#include "core/lint/check.h"

namespace mw::lint {

std::vector<CheckRule> lora_rules();  // COV, SCALE, REMAT
std::vector<CheckRule> peft_rules();
std::vector<CheckRule> mesh_rules();  // TP, FSDP, MESH, SHARD-1, and ours of ranks, batches and rings
std::vector<CheckRule> spec_rules();  // SHARD-2, and ours of rules that cannot be or do not belong together
std::vector<CheckRule> inefficient_sharding_rules();  // SHARD-4
std::vector<CheckRule> load_rules();                  // VER, DTYPE, LOAD
std::vector<CheckRule> export_rules();                // EXP
std::vector<CheckRule> text_rules();                  // TOK, and ours of padding and logits

// Compares dotted versions by their numbers: "0.1.8+33" is 0.1.8.
int compare_versions(std::string_view a, std::string_view b);
// Is the package, of those given in stack.versions, older than `limit`? Empty: its version is not given.
std::optional<bool> older(const CheckInput& input, const std::string& package, std::string_view limit);
Edit set_version(const CheckInput& input, const std::string& package, std::string_view version);
Edit set_model_field(const CheckInput& input, const std::string& field, const std::string& value);
std::string needs_version(std::string_view package);  // "the version of qwix (stack.versions)"

std::vector<mesh::AdapterShape> adapter_shapes(const CheckInput& input);
mesh::ShardingUse use_of(const CheckInput& input);

bool trains_lora(const CheckInput& input);
bool key_equals_value(const model::Layer& layer);  // V is the raw K projection
bool has_key_equals_value(const model::Config& config);

}  // namespace mw::lint
