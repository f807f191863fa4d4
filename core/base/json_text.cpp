// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_text.h"

#include <algorithm>
#include <utility>

namespace mw {

size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

std::string without_python_numbers(std::string_view text, const PythonNumbers& replacements) {
  const std::pair<std::string_view, std::string_view> words[]{
      {"NaN", replacements.nan}, {"-Infinity", replacements.minus_infinity}, {"Infinity", replacements.infinity}};
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      const size_t end = end_of_string(text, i);
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    const auto* word = std::find_if(std::begin(words), std::end(words),
                                    [&](const auto& w) { return text.substr(i, w.first.size()) == w.first; });
    const bool found = word != std::end(words);
    out += found ? word->second : text.substr(i, 1);
    i += found ? word->first.size() : 1;
  }
  return out;
}

}  // namespace mw
