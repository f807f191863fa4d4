// SPDX-License-Identifier: Apache-2.0
#include "core/formats/config/python_tokens.h"

#include <algorithm>

#include "core/base/utf8.h"
#include "core/formats/config/config_text.h"

namespace mw::formats {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  std::vector<PythonToken> tokens() {
    while (at_ < text_.size()) step();
    if (!open_.empty()) fail(out_[open_.back()].line, "the bracket is not closed");
    end_line();
    return std::move(out_);
  }

 private:
  using Kind = PythonToken::Kind;

  [[noreturn]] void fail(int line, const std::string& what) const {
    throw config_error(source_, line, what, "check that the file is Python");
  }

  char next(size_t n = 0) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }

  void add(Kind kind, size_t length) {
    out_.push_back({kind, text_.substr(at_, length), line_, static_cast<int>(open_.size()), 0});
    for (const char c : out_.back().text) line_ += c == '\n';
    at_ += length;
  }

  void end_line() {
    if (out_.empty() || out_.back().kind != Kind::newline) out_.push_back({Kind::newline, {}, line_, 0, 0});
  }

  void step() {
    const char c = next();
    if (c == '\n') {
      if (open_.empty()) end_line();
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '\\' && (next(1) == '\n' || (next(1) == '\r' && next(2) == '\n'))) {
      at_ += next(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (const size_t prefix = string_prefix(); prefix != std::string_view::npos) {
      add(Kind::string, string_length(prefix));
    } else if (starts_name(c)) {
      add(Kind::name, name_length());
    } else if (is_digit(c) || (c == '.' && is_digit(next(1)))) {
      add(Kind::number, number_length());
    } else if (c == ';' && open_.empty()) {
      end_line();
      ++at_;
    } else {
      bracket_or_operator(c);
    }
  }

  size_t name_length() const {
    size_t n = 1;
    while (starts_name(next(n)) || is_digit(next(n))) ++n;
    return n;
  }

  size_t number_length() const {
    const bool hex = next() == '0' && (next(1) == 'x' || next(1) == 'X');
    size_t n = 1;
    for (;; ++n) {
      const char c = next(n), before = next(n - 1);
      const bool sign = (c == '+' || c == '-') && !hex && (before == 'e' || before == 'E');
      if (!is_digit(c) && !starts_name(c) && c != '.' && !sign) return n;
    }
  }

  // The number of letters before the quote; npos: no string begins here.
  size_t string_prefix() const {
    constexpr std::string_view kLetters = "rRbBuUfFtT";
    size_t n = 0;
    while (n < 3 && kLetters.find(next(n)) != std::string_view::npos && next(n) != '\0') ++n;
    return n < 3 && (next(n) == '"' || next(n) == '\'') ? n : std::string_view::npos;
  }

  size_t string_length(size_t prefix) const {
    const std::string_view letters = text_.substr(at_, prefix);
    const bool formatted = letters.find_first_of("fFtT") != std::string_view::npos;
    const char quote = next(prefix);
    const bool triple = next(prefix + 1) == quote && next(prefix + 2) == quote;
    size_t n = prefix + (triple ? 3 : 1), braces = 0;
    for (; at_ + n < text_.size(); ++n) {
      const char c = next(n);
      if (c == '\\') {
        ++n;
      } else if (c == '\n' && !triple) {
        break;
      } else if (formatted && c == '{') {
        if (next(n + 1) == '{' && braces == 0)
          ++n;
        else
          ++braces;
      } else if (formatted && c == '}' && braces > 0) {
        --braces;
      } else if (c == quote && (!triple || (next(n + 1) == quote && next(n + 2) == quote))) {
        if (braces == 0) return n + (triple ? 3 : 1);
        // Python 3.12: an expression in a formatted string may use the same quotes.
        n += triple ? 3 : 1;
        while (at_ + n < text_.size() && next(n) != quote && next(n) != '\n') ++n;
      }
    }
    fail(line_, "the string is not closed");
  }

  void bracket_or_operator(char c) {
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(c) != std::string_view::npos) {
      if (open_.size() >= static_cast<size_t>(kMaxConfigDepth))
        fail(line_, "brackets are nested deeper than " + std::to_string(kMaxConfigDepth) + " levels");
      const size_t index = out_.size();
      add(Kind::op, 1);
      open_.push_back(index);
      return;
    }
    if (const size_t kind = kClose.find(c); kind != std::string_view::npos) {
      if (open_.empty() || out_[open_.back()].text[0] != kOpen[kind]) fail(line_, "the bracket was not opened");
      out_[open_.back()].match = out_.size();
      open_.pop_back();
      return add(Kind::op, 1);
    }
    for (const std::string_view op : {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "==", "!=", "<=",
                                      ">=",  ":=",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "@=", "->"})
      if (text_.substr(at_, op.size()) == op) return add(Kind::op, op.size());
    // '!' and '?' belong to commands of notebooks.
    if (std::string_view("+-*/%@&|^~<>=.,:!?;").find(c) == std::string_view::npos)
      fail(line_, "the character '" + excerpt(text_.substr(at_, 1)) + "' is not expected here");
    add(Kind::op, 1);
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<size_t> open_;
  std::vector<PythonToken> out_;
};

}  // namespace

std::vector<PythonToken> python_tokens(std::string_view text, const std::string& source) {
  return Lexer(text, source).tokens();
}

}  // namespace mw::formats
