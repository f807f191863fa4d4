// SPDX-License-Identifier: Apache-2.0
// A user's regular expression in Python's `re` dialect (PCRE2): a match that would take too long is an error, never a
// hang. Matching is const and safe from several threads.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace mw {

class Pattern {
 public:
  // Throws Error("PATTERN") with the offset of what cannot be read.
  explicit Pattern(std::string_view expression);
  const std::string& text() const { return text_; }
  // Python's re.fullmatch and re.search. Throw Error("PATTERN-SLOW") where the match limit is reached.
  bool matches_all(std::string_view subject) const;
  bool found_in(std::string_view subject) const;

 private:
  enum class Extent { part, whole };
  bool match(std::string_view subject, Extent extent) const;
  std::string text_;
  std::shared_ptr<const void> code_;  // pcre2_code
};

}  // namespace mw
