// SPDX-License-Identifier: Apache-2.0
// The characters (code points) of UTF-8 text by index, as Python counts them. The text must outlive the object.
#pragma once
#include <algorithm>
#include <cwchar>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {

class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) {
    if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return;
    is_ascii_ = false;
    for (size_t i = 0; i < text.size(); i += std::max<size_t>(character_length(text.substr(i)), 1))
      starts_.push_back(i);
  }
  Characters(std::string&&) = delete;
  size_t size() const { return is_ascii_ ? text_.size() : starts_.size(); }
  size_t offset(size_t i) const { return i >= size() ? text_.size() : is_ascii_ ? i : starts_[i]; }
  std::string_view operator[](size_t i) const { return text_.substr(offset(i), offset(i + 1) - offset(i)); }
  // The character that begins at or behind the byte.
  size_t index(size_t byte) const {
    return is_ascii_ ? byte
                     : static_cast<size_t>(std::lower_bound(starts_.begin(), starts_.end(), byte) - starts_.begin());
  }

 private:
  std::string_view text_;
  bool is_ascii_ = true;
  std::vector<size_t> starts_;
};

// Letter case of Unicode text, and replacement. Case changes map one character to one character. Thread-safe.
enum class LetterCase { upper, lower, title, capitalized };

bool is_letter(std::wint_t c);
std::string in_case(std::string_view text, LetterCase wanted);
// str.replace(); `most` < 0: all.
Value replaced(Interpreter& in, const std::string& text, const std::string& old, const std::string& by,
               std::int64_t most);

}  // namespace mw::data::jinja
