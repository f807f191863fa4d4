// SPDX-License-Identifier: Apache-2.0
// Preprocessing of JSON text before it is parsed: string boundaries, and number literals that only Python writes.
// Thread-safe.
#pragma once
#include <string>
#include <string_view>

namespace mw {

// Offset after the closing quote of the string that begins at `at`; the size of `text` if it is not closed.
size_t end_of_string(std::string_view text, size_t at);

// Replacements for the literals NaN, Infinity and -Infinity of Python's json.dumps.
struct PythonNumbers {
  std::string_view nan = "null", minus_infinity = "null", infinity = "null";
};
// Replaces these literals outside strings.
std::string without_python_numbers(std::string_view text, const PythonNumbers& replacements = {});

}  // namespace mw
