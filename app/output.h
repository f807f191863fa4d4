// SPDX-License-Identifier: GPL-3.0-or-later
// All text of the command line goes out through these. Names, messages and errors may hold content of files: control
// characters in it are shown as \x1b, so that no file can move the cursor or set the title of a terminal.
#pragma once
#include <string>
#include <string_view>

#include "core/base/json.h"

namespace mw::app {

// Valid UTF-8 without control characters, except for line ends and tabs, and without marks that reorder text.
std::string terminal_text(std::string_view text);

// printf() to standard output and to standard error.
[[gnu::format(printf, 1, 2)]] void print_text(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);

void print_json(const Json& json);       // one document on standard output
void print_json_line(const Json& json);  // one line, at once

}  // namespace mw::app
