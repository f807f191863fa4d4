// SPDX-License-Identifier: Apache-2.0
// settings.json: what the scripts of a recipe read. Any thread.
#pragma once
#include <span>

#include "core/recipes/recipe.h"

namespace mw::recipes {

// What LoRA adapts, as this software matches it: the expression given, unless it is written for the other library's
// names (none of this one's match); else made from the targets.
std::string expression(Kind kind, const std::string& given, const model::TensorInventory& inventory,
                       const std::vector<model::Role>& targets);

Json settings_json(const Subject& subject);

// A key of settings.json that no script of these recipes reads: it tells people what the experiment says. Every other
// key is read; a test holds the scripts to that. settings.json lists them under "not_read".
struct UnreadKey {
  std::string_view key;
  std::vector<Kind> kinds;  // of those that train; empty: all
  std::string_view reason;
};
std::span<const UnreadKey> unread_keys();
// What a reader has to know: where this software does otherwise by design, what the mesh became.
std::vector<std::string> differences(const Subject& subject);

}  // namespace mw::recipes
