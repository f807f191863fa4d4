// SPDX-License-Identifier: Apache-2.0
// What the shell scripts of a serving recipe read: settings.sh, one quoted assignment a line. Any thread.
#pragma once
#include "core/recipes/recipe.h"

namespace mw::recipes {

void add_serving(const Subject& subject, const Json& settings, std::vector<File>& files);

}  // namespace mw::recipes
