// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/letters.h"

#include <locale.h>
#include <cwctype>

#include "core/data/jinja/characters.h"

namespace mw::data::jinja {
namespace {

// glibc has the Unicode tables of C.UTF-8 without installed locales; null elsewhere: only ASCII letters change.
locale_t unicode_locale() {
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

std::wint_t upper(std::wint_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return unicode_locale() ? ::towupper_l(c, unicode_locale()) : c;
}
std::wint_t lower(std::wint_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return unicode_locale() ? ::towlower_l(c, unicode_locale()) : c;
}

void put(std::wint_t c, std::string& out) {
  const auto byte = [&](std::wint_t b) { out += static_cast<char>(b); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
  } else {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
  }
  byte(0x80 | (c & 0x3f));
}

}  // namespace

std::wint_t wide(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<std::wint_t>(static_cast<unsigned char>(character[i])); };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3:
      return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  }
}

bool is_letter(std::wint_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return unicode_locale() && ::iswalpha_l(c, unicode_locale()) != 0;
}

std::string in_case(std::string_view text, LetterCase wanted) {
  std::string out;
  const Characters all(text);
  bool follows_letter = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::wint_t c = wide(all[i]);
    const bool starts = wanted == LetterCase::title ? !follows_letter : i == 0;
    const bool is_upper = wanted == LetterCase::upper || (wanted != LetterCase::lower && starts);
    follows_letter = is_letter(c);
    put(is_upper ? upper(c) : lower(c), out);
  }
  return out;
}

}  // namespace mw::data::jinja
