// SPDX-License-Identifier: Apache-2.0
// Text: letter case, lines, lists and numbers. Thread-safe.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mw {

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

// Pads the text with spaces at the end to a width in characters of UTF-8.
inline std::string padded(std::string text, size_t width) {
  const auto characters = static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  text.append(width - std::min(width, characters), ' ');
  return text;
}

// The number that the whole text spells; none for any other text.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
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

}  // namespace mw
