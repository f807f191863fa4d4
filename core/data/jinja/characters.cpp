// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/characters.h"

#include <locale.h>
#include <cwctype>

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

}  // namespace

bool is_letter(std::wint_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return unicode_locale() && ::iswalpha_l(c, unicode_locale()) != 0;
}

std::string in_case(std::string_view text, LetterCase wanted) {
  std::string out;
  const Characters all(text);
  bool follows_letter = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::wint_t c = code_point(all[i]);
    const bool starts = wanted == LetterCase::title ? !follows_letter : i == 0;
    const bool is_upper = wanted == LetterCase::upper || (wanted != LetterCase::lower && starts);
    follows_letter = is_letter(c);
    append_utf8(out, is_upper ? upper(c) : lower(c));
  }
  return out;
}

}  // namespace mw::data::jinja
