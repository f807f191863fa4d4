// SPDX-License-Identifier: Apache-2.0
// settings.sh, the input of the shell scripts of a serving recipe: one quoted assignment per line. Thread-safe.
#pragma once
#include "core/recipes/recipe.h"

namespace mw::recipes {

void add_serving(const RecipeInput& input, const Json& settings, std::vector<File>& files);

}  // namespace mw::recipes
