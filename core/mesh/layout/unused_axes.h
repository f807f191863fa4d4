// SPDX-License-Identifier: Apache-2.0
// Mesh axes that nothing is split over, most of them mistyped. Plain values; any thread.
#pragma once
#include <vector>

#include "core/mesh/layout/placement.h"

namespace mw::mesh {

// The axis that presets and batches know ("fsdp", "tp", "data") and this name seems to mean; empty: none.
std::string intended_axis(std::string_view name);

// MESH-2 for each axis of more than one device that is neither known nor named by a sharding rule: its devices would
// repeat each other's work. An error where the name seems to mean a known axis, else a warning.
std::vector<Problem> find_unused_axes(const Mesh& mesh, const ShardingRules& rules);

}  // namespace mw::mesh
