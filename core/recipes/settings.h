// SPDX-License-Identifier: Apache-2.0
// settings.json: what the scripts of a recipe read. Any thread.
#pragma once
#include "core/recipes/recipe.h"

namespace mw::recipes {

Json settings_json(const Subject& subject);
// What a reader has to know: where this software does otherwise by design, what the mesh became.
std::vector<std::string> differences(const Subject& subject);

}  // namespace mw::recipes
