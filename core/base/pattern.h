// SPDX-License-Identifier: Apache-2.0
// A regular expression in the syntax of Python's `re`, matched by PCRE2 with a limit on backtracking. Matching is
// thread-safe.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace mw {

class Pattern {
 public:
  // Throws PATTERN with the offset of the syntax error.
  explicit Pattern(std::string_view expression);
  const std::string& text() const { return text_; }
  // Like Python's re.fullmatch and re.search. Throw PATTERN-SLOW if the match limit is reached.
  bool matches_all(std::string_view subject) const;
  bool found_in(std::string_view subject) const;

 private:
  enum class Extent { part, whole };
  bool match(std::string_view subject, Extent extent) const;
  std::string text_;
  std::shared_ptr<const void> code_;  // pcre2_code
};

}  // namespace mw
