// SPDX-License-Identifier: Apache-2.0
#include "core/base/quote.h"

namespace mw {

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, text.find('\0'))) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_{}[]<>#|!~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace mw
