// SPDX-License-Identifier: Apache-2.0
#include "core/base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace mw {
namespace {

constexpr std::array<std::string_view, 19> kWideSpaces = {
    "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
    "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

bool ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

}  // namespace

size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if (lead == 0xe0 && second < 0xa0) return 0;  // overlong
  if (lead == 0xed && second > 0x9f) return 0;  // surrogate
  if (lead == 0xf0 && second < 0x90) return 0;  // overlong
  if (lead == 0xf4 && second > 0x8f) return 0;  // above U+10FFFF
  return n;
}

char32_t code_point(std::string_view character) {
  const auto bits = [&](size_t i, int mask) { return static_cast<char32_t>(character[i] & mask); };
  switch (character.size()) {
    case 1:
      return bits(0, 0xff);
    case 2:
      return bits(0, 0x1f) << 6 | bits(1, 0x3f);
    case 3:
      return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
    default:
      return bits(0, 0x07) << 18 | bits(1, 0x3f) << 12 | bits(2, 0x3f) << 6 | bits(3, 0x3f);
  }
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80 | (code_point >> shift & 0x3f)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    tail(6);
  } else {
    put(0xf0 | code_point >> 18);
    tail(12);
    tail(6);
  }
  tail(0);
}

size_t first_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    std::uint64_t eight = 0;
    if (text.size() - i >= sizeof eight) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {  // ASCII
        i += sizeof eight;
        continue;
      }
    }
    const size_t n = character_length(text.substr(i));
    if (n == 0) return i;
    i += n;
  }
  return std::string_view::npos;
}

std::string excerpt(std::string_view text, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (i >= bytes) return out + "...";
    const size_t n = character_length(text.substr(i));
    out += n > 0 ? text.substr(i, n) : std::string_view("\uFFFD");
    i += std::max<size_t>(n, 1);
  }
  return out;
}

std::string_view trim(std::string_view text) {
  const auto space_before = [&](std::string_view s) -> size_t {
    if (ascii_space(s.front())) return 1;
    for (const std::string_view w : kWideSpaces)
      if (s.starts_with(w)) return w.size();
    return 0;
  };
  const auto space_after = [&](std::string_view s) -> size_t {
    if (ascii_space(s.back())) return 1;
    for (const std::string_view w : kWideSpaces)
      if (s.ends_with(w)) return w.size();
    return 0;
  };
  size_t n = 0;
  while (!text.empty() && (n = space_before(text)) > 0) text.remove_prefix(n);
  while (!text.empty() && (n = space_after(text)) > 0) text.remove_suffix(n);
  return text;
}

}  // namespace mw
