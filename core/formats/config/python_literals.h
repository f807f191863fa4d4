// SPDX-License-Identifier: Apache-2.0
// Literal values of Python expressions. Internal to core/formats/config.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/formats/config/python_tokens.h"

namespace mw::formats {

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
