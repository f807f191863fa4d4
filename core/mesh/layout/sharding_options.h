// SPDX-License-Identifier: Apache-2.0
// Reads the texts of an experiment's sharding. Thread-safe.
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

}  // namespace mw::mesh
