// SPDX-License-Identifier: Apache-2.0
// Reads the texts of an experiment's sharding, and finds mesh axes that it leaves without a tensor, most of them
// mistyped names. Thread-safe.
#pragma once
#include <vector>

#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"
#include "core/options/mesh.h"

namespace mw::mesh {

// Reads sharding.overrides; sharding.preset auto selects `default_preset`. Throws SET for an invalid rule.
ShardingRules sharding_rules(const options::Sharding& sharding, Preset default_preset);

// Reads sharding.places: the physical grid dimensions that mesh axes map to. Throws SET for an invalid entry.
std::vector<RequestedPlacement> axis_places(const options::Sharding& sharding);

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
