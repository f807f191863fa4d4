// SPDX-License-Identifier: Apache-2.0
// JSON text before it is parsed: where strings end, and the words of Python that JSON does not have. Any thread.
#pragma once
#include <string>
#include <string_view>

namespace mw {

// After the closing quote of the string that begins at `at`; the text's end if it does not close.
size_t end_of_string(std::string_view text, size_t at);

// Python's json.dumps writes NaN, Infinity and -Infinity as bare words.
struct PythonNumbers {  // JSON that replaces each word
  std::string_view nan = "null", minus_infinity = "null", infinity = "null";
};
// The text with those words replaced, strings untouched.
std::string without_python_numbers(std::string_view text, const PythonNumbers& replacements = {});

}  // namespace mw
