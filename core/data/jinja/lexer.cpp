// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/lexer.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::data::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Line ends as \n, without one at the end.
std::string with_unix_lines(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string text, const std::string& source) : text_(std::move(text)), source_(source) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const size_t tag = next_tag();
      read_text(tag);
      if (tag == std::string::npos) break;
      read_tag();
    }
    add(TemplateTokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  bool has(std::string_view what) const { return std::string_view(text_).substr(at_).starts_with(what); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  Position position(size_t offset) {
    for (; counted_ < offset; ++counted_)
      if (text_[counted_] == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    return {line_, static_cast<std::uint32_t>(offset - line_start_ + 1)};
  }
  [[noreturn]] void fail(const std::string& message, const std::string& found, const std::string& expected = {}) {
    fail_template(source_, position(at_), message, found, expected);
  }
  void add(TemplateTokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), position(at_)}); }

  size_t next_tag() const {
    size_t at = at_;
    while ((at = text_.find('{', at)) != std::string::npos) {
      const char next = at + 1 < text_.size() ? text_[at + 1] : '\0';
      if (next == '%' || next == '{' || next == '#') return at;
      ++at;
    }
    return at;
  }

  // The text before a tag. The sign behind the opening of the tag, or lstrip_blocks, removes white space from its end.
  void read_text(size_t tag) {
    std::string_view text = std::string_view(text_).substr(at_, tag == std::string::npos ? tag : tag - at_);
    if (tag != std::string::npos) {
      const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
      if (sign == '-')
        text = without_trailing_space(text);
      else if (sign != '+' && text_[tag + 1] != '{')
        text = without_indent(text);
    }
    if (!text.empty()) add(TemplateTokenKind::text, std::string(text));
    position(tag == std::string::npos ? text_.size() : tag);
    at_ = std::min(tag, text_.size());
  }
  static std::string_view without_trailing_space(std::string_view text) {
    const std::string_view trimmed = trim(text);
    return trimmed.empty() ? trimmed : text.substr(0, static_cast<size_t>(trimmed.end() - text.begin()));
  }
  std::string_view without_indent(std::string_view text) const {
    const size_t newline = text.rfind('\n');
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start == 0 && !at_line_start_) return text;
    return trim(text.substr(start)).empty() ? text.substr(0, start) : text;
  }

  // White space behind a tag: all of it after a minus; one newline after a block or comment, unless a plus is given.
  void skip_after(char sign, bool trims_newline) {
    if (sign == '-') {
      const std::string_view rest = std::string_view(text_).substr(at_);
      const std::string_view trimmed = trim(rest);
      at_ += trimmed.empty() ? rest.size() : static_cast<size_t>(trimmed.begin() - rest.begin());
    } else if (sign != '+' && trims_newline && peek() == '\n') {
      ++at_;
    }
    at_line_start_ = at_ > 0 && text_[at_ - 1] == '\n';
  }

  void read_tag() {
    const char kind = peek(1);
    if (kind == '#') return read_comment();
    if (kind == '%' && read_raw()) return;
    add(kind == '{' ? TemplateTokenKind::output_begin : TemplateTokenKind::block_begin, text_.substr(at_, 2));
    at_ += 2;
    if (peek() == '-' || peek() == '+') ++at_;
    read_expression(kind == '{');
  }

  void read_comment() {
    const size_t end = text_.find("#}", at_ + 2);
    if (end == std::string::npos) fail("the comment is not closed", "{#", "#}");
    const char sign = end > at_ + 2 ? text_[end - 1] : '\0';
    at_ = end + 2;
    skip_after(sign == '-' || sign == '+' ? sign : '\0', true);
  }

  struct BareTag {
    size_t begin = std::string::npos, end = 0;  // end: behind %}
    char open = '\0', close = '\0';             // signs
  };
  // The next {% word %} at or behind `from`; `only_here`: at `from`.
  BareTag bare_tag(std::string_view word, size_t from, bool only_here) const {
    for (size_t at = from; (at = text_.find("{%", at)) != std::string::npos; at += 2) {
      if (only_here && at != from) break;
      BareTag tag{at, at + 2};
      if (tag.end < text_.size() && (text_[tag.end] == '-' || text_[tag.end] == '+')) tag.open = text_[tag.end++];
      while (tag.end < text_.size() && is_blank(text_[tag.end])) ++tag.end;
      if (text_.compare(tag.end, word.size(), word) != 0) continue;
      tag.end += word.size();
      while (tag.end < text_.size() && is_blank(text_[tag.end])) ++tag.end;
      if (tag.end < text_.size() && (text_[tag.end] == '-' || text_[tag.end] == '+')) tag.close = text_[tag.end++];
      if (text_.compare(tag.end, 2, "%}") != 0) continue;
      tag.end += 2;
      return tag;
    }
    return {};
  }

  bool read_raw() {
    const BareTag open = bare_tag("raw", at_, true);
    if (open.begin == std::string::npos) return false;
    const BareTag close = bare_tag("endraw", open.end, false);
    if (close.begin == std::string::npos) fail("the raw block is not closed", "{% raw %}", "{% endraw %}");
    at_ = open.end;
    skip_after(open.close, false);
    std::string_view text = std::string_view(text_).substr(at_, close.begin - std::min(at_, close.begin));
    if (close.open == '-')
      text = without_trailing_space(text);
    else if (close.open != '+')
      text = without_indent(text);
    if (!text.empty()) add(TemplateTokenKind::text, std::string(text));
    at_ = close.end;
    skip_after(close.close, true);
    return true;
  }

  void read_expression(bool is_output) {
    std::string open;  // brackets
    for (;;) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      if (at_ >= text_.size()) fail("the template ends within a tag", "the end", is_output ? "}}" : "%}");
      if (open.empty() && read_end(is_output)) return;
      const char c = peek();
      if (is_digit(c))
        read_number();
      else if (is_name_start(c))
        read_name();
      else if (c == '"' || c == '\'')
        read_string(c);
      else
        read_symbol(open);
    }
  }

  bool read_end(bool is_output) {
    const char sign = peek() == '-' || (peek() == '+' && !is_output) ? peek() : '\0';
    const std::string_view end = is_output ? "}}" : "%}";
    if (std::string_view(text_).substr(at_ + (sign ? 1 : 0)).substr(0, 2) != end) return false;
    add(is_output ? TemplateTokenKind::output_end : TemplateTokenKind::block_end, std::string(end));
    at_ += sign ? 3 : 2;
    skip_after(sign, !is_output);
    return true;
  }

  void read_name() {
    size_t end = at_;
    while (end < text_.size() && (is_name_start(text_[end]) || is_digit(text_[end]))) ++end;
    add(TemplateTokenKind::name, text_.substr(at_, end - at_));
    at_ = end;
  }

  void read_number() {
    size_t end = at_;
    const auto digits = [&] {
      while (end < text_.size() &&
             (is_digit(text_[end]) || (text_[end] == '_' && end + 1 < text_.size() && is_digit(text_[end + 1]))))
        ++end;
    };
    const auto digit_at = [&](size_t i) { return i < text_.size() && is_digit(text_[i]); };
    digits();
    bool is_real = false;
    if (end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
      is_real = true;
      ++end;
      digits();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const size_t sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? 1 : 0;
      if (digit_at(end + 1 + sign)) {
        is_real = true;
        end += 1 + sign;
        digits();
      }
    }
    std::string text = text_.substr(at_, end - at_);
    std::erase(text, '_');
    add(is_real ? TemplateTokenKind::real : TemplateTokenKind::integer, text);
    at_ = end;
  }

  void read_string(char quote) {
    const size_t start = at_;
    std::string value;
    size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != quote; ++i) {
      if (text_[i] == '\\' && i + 1 < text_.size())
        i = read_escape(i + 1, value);
      else
        value += text_[i];
    }
    if (i >= text_.size())
      fail("the string is not closed", excerpt(std::string_view(text_).substr(start), 30), {quote});
    add(TemplateTokenKind::string, std::move(value));
    at_ = i + 1;
  }

  // Python's escapes. `i`: the character behind the backslash; returns the last one of the escape.
  size_t read_escape(size_t i, std::string& out) {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
    const char c = text_[i];
    if (const size_t at = kLetters.find(c); at != kLetters.npos) {
      out += kValues[at];
      return i;
    }
    if (c == '\n') return i;
    const size_t hex_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const bool octal = c >= '0' && c <= '7';
    if (c == 'N') fail("named characters are not supported in strings", "\\N", "\\u and four digits");
    if (!hex_digits && !octal) {
      out += {'\\', c};
      return i;
    }
    std::uint32_t code = 0;
    size_t n = 0;
    const size_t first = octal ? i : i + 1, most = octal ? 3 : hex_digits;
    for (; n < most && first + n < text_.size(); ++n) {
      const char d = text_[first + n];
      const int digit = is_digit(d)            ? d - '0'
                        : d >= 'a' && d <= 'f' ? d - 'a' + 10
                        : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                               : 99;
      if (digit >= (octal ? 8 : 16)) break;
      code = code * (octal ? 8 : 16) + static_cast<std::uint32_t>(digit);
    }
    if ((!octal && n < most) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      fail("the escape in a string is invalid", "\\" + text_.substr(i, std::min<size_t>(n + 1, 9)),
           "a Unicode character");
    append_utf8(out, code);
    return first + n - 1;
  }

  void read_symbol(std::string& open) {
    constexpr std::array<std::string_view, 6> kTwo{"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view two : kTwo)
      if (has(two)) {
        add(TemplateTokenKind::symbol, std::string(two));
        at_ += 2;
        return;
      }
    const char c = peek();
    constexpr std::string_view kOne = "+-/*%~[](){}<>=.:|,;", kOpen = "([{", kClose = ")]}";
    if (kOne.find(c) == kOne.npos) fail("unexpected character", excerpt(std::string_view(text_).substr(at_), 1));
    if (kOpen.find(c) != kOpen.npos) open += c;
    if (const size_t at = kClose.find(c); at != kClose.npos) {
      if (open.empty() || open.back() != kOpen[at]) fail("a bracket does not match", {c});
      open.pop_back();
    }
    add(TemplateTokenKind::symbol, {c});
    ++at_;
  }

  const std::string text_;
  const std::string& source_;
  size_t at_ = 0, counted_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

void fail_template(const std::string& source, Position at, const std::string& message, const std::string& found,
                   const std::string& expected) {
  throw Error("TEMPLATE", message,
              {.file = source,
               .place = "line " + std::to_string(at.line) + ", column " + std::to_string(at.column),
               .found = found,
               .expected = expected});
}

std::vector<Token> tokenize(std::string_view text, const std::string& source) {
  if (const size_t bad = first_invalid_utf8(text); bad != std::string_view::npos)
    throw Error("TEMPLATE", "the chat template is not UTF-8", {.file = source, .place = "byte " + std::to_string(bad)});
  return Lexer(with_unix_lines(text), source).run();
}

}  // namespace mw::data::jinja
