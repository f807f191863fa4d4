// SPDX-License-Identifier: Apache-2.0
// Removes credentials from URLs in text. Applied to everything that is recorded or shown: events, frozen experiments
// and names in the run store, exported recipes, error messages. Connections use the original text. Thread-safe.
#pragma once
#include <string>
#include <string_view>

#include "core/base/json.h"

namespace mw {

// "http://user:password@host/v1?api_key=k&n=1" becomes "http://host/v1?api_key=...&n=1".
std::string without_url_secrets(std::string_view text);
void remove_url_secrets(Json& value);  // from all strings in `value`

}  // namespace mw
