// SPDX-License-Identifier: Apache-2.0
// Parses a Jinja template. Thread-safe.
#pragma once
#include <string>
#include <string_view>

#include "core/data/jinja/syntax.h"

namespace mw::data::jinja {

// Throws Error TEMPLATE for what is no Jinja, and for tags that chat templates do not use.
Body parse_template(std::string_view text, const std::string& source);

}  // namespace mw::data::jinja
