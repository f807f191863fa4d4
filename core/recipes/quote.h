// SPDX-License-Identifier: Apache-2.0
// Any text as one word of a POSIX shell, and on one line of Markdown. Any thread.
#pragma once
#include <string>
#include <string_view>

namespace mw::recipes {

// 'it'\''s': nothing in it is read by the shell. A NUL byte, which no word can hold, ends it.
std::string shell_quoted(std::string_view text);

// Without what Markdown, HTML or a table would read: markers are escaped, line ends are spaces.
std::string markdown(std::string_view text);

}  // namespace mw::recipes
