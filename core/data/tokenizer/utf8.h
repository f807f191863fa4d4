// SPDX-License-Identifier: Apache-2.0
// UTF-8 as the tokenizers and readers need it. Pure functions, any thread.
#pragma once
#include <string>
#include <string_view>

namespace mw::data {

// Bytes of the well-formed character (Unicode 15, table 3-7) that `text` starts with; 0 when it is malformed or empty.
size_t character_length(std::string_view text);
// Offset of the first malformed byte, or npos.
size_t first_invalid_utf8(std::string_view text);
// The first `bytes` or so, well-formed: for error messages, which are printed as JSON.
std::string excerpt(std::string_view text, size_t bytes = 80);
// Without the white space Python's str.strip() removes, as the Jinja templates' trim does.
std::string_view trim(std::string_view text);

}  // namespace mw::data
