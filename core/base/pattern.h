// SPDX-License-Identifier: Apache-2.0
// A regular expression in the syntax of Python's `re`, matched by PCRE2 with a limit on backtracking. Matching is
// thread-safe.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace mw {

enum class Extent { whole, part };  // of the subject that an expression matches: Python's re.fullmatch, or re.search

class Pattern {
 public:
  // Throws PATTERN with the offset of the syntax error.
  explicit Pattern(std::string_view expression, Extent extent = Extent::whole);
  const std::string& text() const { return text_; }
  bool matches(std::string_view subject) const;  // throws PATTERN-SLOW if the match limit is reached

 private:
  std::string text_;
  std::shared_ptr<const void> code_;  // pcre2_code
};

}  // namespace mw
