// SPDX-License-Identifier: Apache-2.0
// A model as a complete ModelConfig of Tunix, and the parameter of Tunix for each tensor in the files. Does not depend
// on the configs that Tunix ships. Thread-safe.
#pragma once

#include "core/base/json.h"
#include "core/model/inventory.h"

namespace mw::recipes {

// {module, class, config}. Throws RECIPE if Tunix does not support the model.
Json tunix_model(const model::Config& config);
// [[parameter, slot or -1, name in the files without prefix], ...]
Json tunix_tensors(const model::Config& config, const model::TensorInventory& inventory);

}  // namespace mw::recipes
