// SPDX-License-Identifier: Apache-2.0
#include "core/base/excerpt.h"

namespace mw {

std::string text_excerpt(const std::string& text) {
  return text.size() > 60 ? valid_utf8(text.substr(0, 57)) + "..." : valid_utf8(text);
}

std::string json_excerpt(const Json& value) {
  return text_excerpt(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace mw
