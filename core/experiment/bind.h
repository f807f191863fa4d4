// SPDX-License-Identifier: Apache-2.0
// Reads the values of an experiment's document. Thread-safe.
#pragma once
#include <vector>

#include "core/experiment/config.h"
#include "core/experiment/experiment.h"
#include "core/model/inventory.h"

namespace mw::experiment {

// For Experiment::config(), which keeps the result; nothing else calls it. Invalid values count as not set.
ExperimentConfig bind(const Experiment& experiment);

// The projections of lora.targets, in the order of a layer.
std::vector<model::Role> lora_targets(const options::Lora& lora);

}  // namespace mw::experiment
