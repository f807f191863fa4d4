// SPDX-License-Identifier: Apache-2.0
// Finds mesh axes that split no tensor, most of them mistyped names. Plain values; any thread.
#pragma once
#include <vector>

#include "core/mesh/layout/placement.h"

namespace mw::mesh {

// The known axis ("fsdp", "tp" or "data") that `name` is probably a typing error for; empty if none is close.
std::string intended_axis(std::string_view name);

// Returns MESH-2 for each axis of more than one device that is neither known nor used by a sharding rule: its devices
// would repeat each other's work. An error if the name resembles a known axis, else a warning.
std::vector<Problem> find_unused_axes(const Mesh& mesh, const ShardingRules& rules);

}  // namespace mw::mesh
