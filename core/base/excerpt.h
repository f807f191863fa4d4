// SPDX-License-Identifier: Apache-2.0
// What an Error says was found: at most 60 bytes of it, valid UTF-8. Any thread.
#pragma once
#include <string>

#include "core/base/json.h"

namespace mw {

std::string text_excerpt(const std::string& text);
std::string json_excerpt(const Json& value);  // as JSON

}  // namespace mw
