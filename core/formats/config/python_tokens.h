// SPDX-License-Identifier: Apache-2.0
// Splits Python source into tokens. Internal to core/formats/config.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw::formats {

struct PythonToken {
  enum class Kind { name, number, string, op, newline };  // newline: the end of a logical line, or a semicolon
  Kind kind = Kind::newline;
  std::string_view text{};  // with prefix and quotes of a string
  int line = 1;
  int depth = 0;     // brackets around it; that of an opening and of its closing bracket are equal
  size_t match = 0;  // of an opening bracket: the index of the closing one
  bool is(std::string_view op) const { return kind == Kind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

// The last token is a newline. Throws PORT for strings and brackets that are not closed, other characters than Python
// has, and more than kMaxConfigDepth brackets.
std::vector<PythonToken> python_tokens(std::string_view text, const std::string& source);

}  // namespace mw::formats
