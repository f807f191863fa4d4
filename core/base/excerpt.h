// SPDX-License-Identifier: Apache-2.0
// Excerpts of input for error messages: at most 60 bytes, valid UTF-8. Thread-safe.
#pragma once
#include <string>

#include "core/base/json.h"

namespace mw {

std::string text_excerpt(const std::string& text);
std::string json_excerpt(const Json& value);  // as JSON

}  // namespace mw
