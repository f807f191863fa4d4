// SPDX-License-Identifier: Apache-2.0
// Parts of a self-contained HTML document: no scripts, no references to other files or to the network. All texts are
// escaped here; callers never write markup with foreign text themselves. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/present/table.h"

namespace mw::present {

// Valid UTF-8 in which the characters that mean something in HTML are escaped, also within quotes. Control characters
// become U+FFFD.
std::string escape_html(std::string_view text);

std::string html_table(const Table& table);  // empty without rows

std::string html_heading(int level, std::string_view text);  // level 1 to 6
std::string html_paragraph(std::string_view text);
std::string html_list(const std::vector<std::string>& items);  // empty without items
// A label with a colour of its own: "measured", "predicted", "imported".
std::string html_badge(std::string_view text);
// A section that is closed at first.
std::string html_details(std::string_view summary, std::string_view html);

// The whole document. `body` is HTML that the functions above have made.
std::string html_document(std::string_view title, std::string_view body);

}  // namespace mw::present
