// SPDX-License-Identifier: Apache-2.0
// Text: letter case, lines, lists, numbers, quoting, UTF-8, similar names and URLs without their credentials.
// Thread-safe.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mw {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);  // the text that printf() writes

// Changes ASCII letters only.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Removes the first line from `text` and returns it without its line end, "\n" or "\r\n".
inline std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// "a, b, c". `text_of` makes the text of an item.
template <class Items, class TextOf = std::identity>
std::string joined(const Items& items, std::string_view separator = ", ", const TextOf& text_of = {}) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    out += text_of(item);
    first = false;
  }
  return out;
}

// Characters of UTF-8 text: its code points, so that a column with "µs" is as wide as one with "ms".
inline size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The text with spaces up to `width` characters: before it, or behind it if the width is negative, as in printf.
inline std::string padded(std::string_view text, int width) {
  const size_t wanted = static_cast<size_t>(width < 0 ? -width : width), length = characters(text);
  const std::string spaces(wanted > length ? wanted - length : 0, ' ');
  return width < 0 ? std::string(text) + spaces : spaces + std::string(text);
}
// The text padded() to the width, or cut to it.
inline std::string fitted(std::string_view text, int width) {
  size_t length = static_cast<size_t>(width < 0 ? -width : width), end = 0;
  while (end < text.size() && (length > 0 || (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80))
    if ((static_cast<unsigned char>(text[end++]) & 0xC0) != 0x80) --length;
  return padded(text.substr(0, end), width);
}
// A row of a table: padded cells with a space between them.
struct TableCell {
  std::string text;
  int width = 0;
};
inline std::string table_row(const std::vector<TableCell>& cells) {
  return joined(cells, " ", [](const TableCell& cell) { return padded(cell.text, cell.width); });
}

// The number that the whole text spells, an integer with any base; none for any other text.
template <class Number, class... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// The double of the shortest decimal that reads back to the same float: 1e-6f gives 1e-06, not 9.99999997e-07.
inline double shortest_double(float value) {
  std::array<char, 32> text{};
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double shortest = value;
  std::from_chars(text.data(), end, shortest);
  return shortest;
}

// One literal word: 'it'\''s'. The text ends at a NUL byte.
std::string shell_quoted(std::string_view text);

// Prepends an apostrophe to text that a spreadsheet would interpret as a formula (=, +, -, @, tab or carriage return
// first, and not a number), as OWASP recommends.
std::string spreadsheet_text(const std::string& text);
std::string csv_cell(const std::string& content);  // spreadsheet_text(), quoted if necessary

// One line of plain text: markup of Markdown, HTML and tables is escaped, line ends become spaces.
std::string escape_markdown(std::string_view text);

// Length of the well-formed character (Unicode 15, table 3-7) at the start of `text`; 0 if malformed or empty.
size_t character_length(std::string_view text);
char32_t code_point(std::string_view character);  // of one valid character
void append_utf8(std::string& out, char32_t code_point);
// Offset of the first malformed byte, or npos.
size_t first_invalid_utf8(std::string_view text);
std::string_view trimmed(std::string_view text);  // without spaces, tabs and line ends around it
// About the first `bytes` bytes as well-formed UTF-8, for error messages.
std::string excerpt(std::string_view text, size_t bytes = 80);
// Removes the white space that Python's str.strip() removes, like `trim` in Jinja templates.
std::string_view trim(std::string_view text);

// The `count` names nearest to `wrong`: first names that start with it, then by edit distance; ties in the given order.
std::vector<std::string> nearest_names(std::string_view wrong, const std::vector<std::string>& names, size_t count = 3);
// Whether `text` is `name` in another letter case or with one letter replaced, added, missing or swapped with its
// neighbour. Names of two letters must have the same letters: "pt" is a typo of "tp", "ep" is not.
bool is_likely_typo(std::string_view text, std::string_view name);
// nearest_names joined for a message: "v5p-8, v5e-8 or v6e-8"
std::string nearest_names_text(std::string_view wrong, const std::vector<std::string>& names, size_t count = 3);

// Removes credentials from URLs. Applied to everything that is recorded or shown: events, frozen experiments and names
// in the run store, exported recipes, error messages. Connections use the original text.
// "http://user:password@host/v1?api_key=k&n=1" becomes "http://host/v1?api_key=...&n=1".
std::string without_url_secrets(std::string_view text);

}  // namespace mw
