// SPDX-License-Identifier: Apache-2.0
// From the document to the mesh, its sharding rules and the model's configuration. Any thread.
#pragma once
#include <vector>

#include "core/experiment/experiment.h"
#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"
#include "core/model/config.h"

namespace mw::experiment {

// The mesh as the document has it, axes in its order; none where it says nothing.
mesh::Mesh given_mesh(const Experiment& experiment);
// sharding.preset (auto: `usual`) and sharding.overrides. Throws Error for a rule that cannot be read.
mesh::ShardingRules sharding_rules(const Experiment& experiment, mesh::Preset usual);

// sharding.places: the grid dimensions that axes are to lie on. Throws Error for an entry that cannot be read.
std::vector<mesh::RequestedPlacement> axis_places(const Experiment& experiment);

// Sizes of the document's model: of model.path's config.json, else of model.id. Throws Error where neither can be read.
model::Config config_of(const Experiment& experiment);

}  // namespace mw::experiment
