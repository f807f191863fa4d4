// SPDX-License-Identifier: Apache-2.0
// Reads the mesh, the sharding rules and the model configuration from an experiment. Thread-safe.
#pragma once
#include <vector>

#include "core/experiment/experiment.h"
#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"
#include "core/model/config.h"

namespace mw::experiment {

// Returns the mesh of the document with its axes in document order; empty if the document defines none.
mesh::Mesh given_mesh(const Experiment& experiment);
// Reads sharding.preset (auto selects `default_preset`) and sharding.overrides. Throws SET for an invalid rule.
mesh::ShardingRules sharding_rules(const Experiment& experiment, mesh::Preset default_preset);

// Reads sharding.places: the physical grid dimensions that mesh axes map to. Throws SET for an invalid entry.
std::vector<mesh::RequestedPlacement> axis_places(const Experiment& experiment);

// Reads the model configuration from config.json in model.path, or from the catalogue by model.id. Throws MISSING if
// neither is set, and the reader's Error for an invalid file.
model::Config config_of(const Experiment& experiment);

}  // namespace mw::experiment
