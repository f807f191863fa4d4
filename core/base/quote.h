// SPDX-License-Identifier: Apache-2.0
// Quotes text for POSIX shells and Markdown. Thread-safe.
#pragma once
#include <string>
#include <string_view>

namespace mw {

// One literal word: 'it'\''s'. The text ends at a NUL byte.
std::string shell_quoted(std::string_view text);

// One line of plain text: markup of Markdown, HTML and tables is escaped, line ends become spaces.
std::string escape_markdown(std::string_view text);

}  // namespace mw
