// SPDX-License-Identifier: Apache-2.0
// settings.json, the input of a recipe's scripts, and settings.sh of shell scripts. Thread-safe.
#pragma once
#include "core/recipes/recipe.h"

namespace mw::recipes {

// The regular expression that selects the adapted modules in this software: `given` if it matches any of its module
// names, else one made from `targets`.
std::string module_expression(model::Stack kind, const std::string& given, const model::TensorInventory& inventory,
                              const std::vector<model::Role>& targets);

Json settings_json(const RecipeInput& input);

// Differences between this software and the engine, for README.md.
std::vector<std::string> differences(const RecipeInput& input);

// settings.sh of a serving recipe: one quoted assignment per line.
void add_serving(const RecipeInput& input, const Json& settings, std::vector<File>& files);

}  // namespace mw::recipes
