// SPDX-License-Identifier: Apache-2.0
// Finds mesh axes that split no tensor, most of them mistyped names. Plain values; any thread.
#pragma once
#include <vector>

#include "core/mesh/layout/placement.h"

namespace mw::mesh {

// The known axis ("fsdp", "tp" or "data") that `name` is probably a typing error for; empty if none is close.
std::string intended_axis(std::string_view name);

// The axes that split tensors or the batch under the rules: those of the preset, then those of overrides. FSDP splits
// parameters and rows over fsdp and data only; a server with Megatron's split uses tp, and data for replicas; software
// with expert parallelism splits the experts of a model over ep.
std::vector<std::string> splitting_axes(const ShardingRules& rules, ShardingUse use);

// Returns MESH-2 for each axis of more than one device that splits nothing: its devices would repeat each other's work.
// An error if the name resembles a known axis, else a warning.
std::vector<Problem> find_unused_axes(const Mesh& mesh, const ShardingRules& rules,
                                      ShardingUse use = ShardingUse::training);

}  // namespace mw::mesh
