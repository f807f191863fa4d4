// SPDX-License-Identifier: Apache-2.0
// The built-in models of resources/models/catalogue.json, which names the sources of the constants. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"

namespace mw::model {

// All ids: gemma2-2b ... gemma4-31b; for planning only llama2-7b ... gemma3n-e4b.
std::vector<std::string> catalogue_ids();
// Throws MODEL-ID with the nearest ids if `id` is unknown.
Config catalogue_config(std::string_view id);

}  // namespace mw::model
