// SPDX-License-Identifier: Apache-2.0
// Letter case of Unicode text, and replacement. Case changes map one character to one character. Thread-safe.
#pragma once
#include <cwchar>
#include <string>
#include <string_view>

#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {

enum class LetterCase { upper, lower, title, capitalized };

bool is_letter(std::wint_t c);
std::string in_case(std::string_view text, LetterCase wanted);
// str.replace(); `most` < 0: all.
Value replaced(Interpreter& in, const std::string& text, const std::string& old, const std::string& by,
               std::int64_t most);

}  // namespace mw::data::jinja
