// SPDX-License-Identifier: Apache-2.0
// Cuts a Jinja template into tokens, with trim_blocks and lstrip_blocks as transformers sets them. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/data/jinja/syntax.h"

namespace mw::data::jinja {

enum class TemplateTokenKind {
  text,
  output_begin,
  output_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  symbol,
  end
};

struct Token {
  TemplateTokenKind kind = TemplateTokenKind::end;
  std::string text;  // of a string: its value
  Position at{};
};

// `text` must be UTF-8. The last token has kind end. Throws Error TEMPLATE naming `source`, line and column.
std::vector<Token> tokenize(std::string_view text, const std::string& source);

}  // namespace mw::data::jinja
