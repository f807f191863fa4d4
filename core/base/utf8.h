// SPDX-License-Identifier: Apache-2.0
// UTF-8 text: lengths of characters, validity, excerpts for messages. Thread-safe.
#pragma once
#include <string>
#include <string_view>

namespace mw {

// Length of the well-formed character (Unicode 15, table 3-7) at the start of `text`; 0 if malformed or empty.
size_t character_length(std::string_view text);
// Offset of the first malformed byte, or npos.
char32_t code_point(std::string_view character);  // of one valid character
void append_utf8(std::string& out, char32_t code_point);
size_t first_invalid_utf8(std::string_view text);
// About the first `bytes` bytes as well-formed UTF-8, for error messages.
std::string excerpt(std::string_view text, size_t bytes = 80);
// Removes the white space that Python's str.strip() removes, like `trim` in Jinja templates.
std::string_view trim(std::string_view text);

}  // namespace mw
