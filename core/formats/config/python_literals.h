// SPDX-License-Identifier: Apache-2.0
// Literal values of Python expressions. Internal to core/formats/config.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::formats {

// Splits Python source into tokens. Internal to core/formats/config.
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

struct PythonValue {
  std::optional<Json> value;  // empty: not a literal
  std::string reason;         // then: "a call"
};

// Returns the value of a name, or null.
using FindName = std::function<const Json*(std::string_view name)>;

// Literals, lists, tuples, sets and dictionaries of literals, names that `find_name` knows, and constants of libraries
// such as torch.bfloat16 (as "bfloat16"). `tokens`: those of one file; [begin, end) is the expression.
PythonValue python_value(std::span<const PythonToken> tokens, size_t begin, size_t end, const FindName& find_name);

// The end of the item that begins at `begin`: the next `separator` at its depth, else `end`.
size_t end_of_item(std::span<const PythonToken> tokens, size_t begin, size_t end, std::string_view separator);

}  // namespace mw::formats
