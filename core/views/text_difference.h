// SPDX-License-Identifier: Apache-2.0
// Compares two texts word by word. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw::views {

struct TextPart {
  enum class Kind { same, missing, extra } kind = Kind::same;  // missing: only in `expected`; extra: only in `actual`
  std::string text;
  bool operator==(const TextPart&) const = default;
};
// Returns a shortest sequence of parts that turns `expected` into `actual`. Texts of more than 2,000 words are compared
// as a whole.
std::vector<TextPart> text_difference(std::string_view expected, std::string_view actual);

}  // namespace mw::views
