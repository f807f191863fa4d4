// SPDX-License-Identifier: Apache-2.0
// Reads the values of an experiment's document, and those that its texts describe. Thread-safe.
#pragma once
#include <vector>

#include "core/experiment/config.h"
#include "core/experiment/experiment.h"

namespace mw::experiment {

// For Experiment::config(), which keeps the result; nothing else calls it. Invalid values count as not set.
ExperimentConfig bind(const Experiment& experiment);

// Reads sharding.overrides; sharding.preset auto selects `default_preset`. Throws SET for an invalid rule.
mesh::ShardingRules sharding_rules(const ShardingSection& sharding, mesh::Preset default_preset);

// Reads sharding.places: the physical grid dimensions that mesh axes map to. Throws SET for an invalid entry.
std::vector<mesh::RequestedPlacement> axis_places(const ShardingSection& sharding);

// Reads the model configuration from config.json in model.path, or from the catalogue by model.id. Throws MISSING if
// neither is set, and the reader's Error for an invalid file.
model::Config model_config(const ModelSection& model);

}  // namespace mw::experiment
