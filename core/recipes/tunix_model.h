// SPDX-License-Identifier: Apache-2.0
// A model as Tunix's ModelConfig has it, every field given, and which parameter each tensor of the files becomes: no
// shipped config, prefix or pattern of Tunix is relied on. Any thread.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/model/inventory.h"

namespace mw::recipes {

// {module, class, config}. Throws Error RECIPE for a model that Tunix's code cannot be told.
Json tunix_model(const model::Config& config);
// [[parameter, slot or -1, name in the files without prefix], ...]
Json tunix_tensors(const model::Config& config, const model::TensorInventory& inventory);

}  // namespace mw::recipes
