// SPDX-License-Identifier: Apache-2.0
#include "core/formats/config/python_literals.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
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

namespace {

using Kind = PythonToken::Kind;

PythonValue not_read(std::string reason) {
  return {std::nullopt, std::move(reason)};
}

// False: an escape that is not decoded here.
bool append_escaped(std::string_view body, size_t& at, std::string& out) {
  constexpr std::string_view kFrom = "nrt\\'\"", kTo = "\n\r\t\\'\"";
  const char c = at + 1 < body.size() ? body[at + 1] : '\0';
  if (const size_t i = kFrom.find(c); i != std::string_view::npos && c != '\0') {
    out += kTo[i];
    at += 2;
    return true;
  }
  if (c == '\n') {  // the line goes on
    at += 2;
    return true;
  }
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
  if (digits > 0) {
    unsigned code = 0;
    const std::string_view hex = body.substr(std::min(at + 2, body.size()), digits);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (error != std::errc() || end != hex.data() + digits || code == 0 || (code >= 0xd800 && code < 0xe000))
      return false;
    append_utf8(out, code);
    at += 2 + digits;
    return true;
  }
  if ((c >= '0' && c <= '9') || (c != '\0' && std::string_view("abfvNU").find(c) != std::string_view::npos))
    return false;
  out += '\\';  // Python keeps other backslashes
  ++at;
  return true;
}

PythonValue string_value(std::string_view token) {
  const size_t prefix = token.find_first_of("\"'");
  const std::string letters = lower_case(token.substr(0, prefix));
  if (letters.find('b') != std::string::npos) return not_read("bytes");
  const std::string_view quoted = token.substr(prefix);
  const size_t quotes = quoted.size() >= 6 && quoted[1] == quoted[0] && quoted[2] == quoted[0] ? 3 : 1;
  const std::string_view body = quoted.substr(quotes, quoted.size() - 2 * quotes);
  const bool formatted = letters.find_first_of("ft") != std::string::npos;
  if (formatted && body.find_first_of("{}") != std::string_view::npos) return not_read("a formatted string");
  if (letters.find('r') != std::string::npos) return {Json(valid_utf8(body)), {}};
  std::string out;
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\')
      out += body[i++];
    else if (!append_escaped(body, i, out))
      return not_read("a string with an escape that is not read");
  }
  return {Json(valid_utf8(out)), {}};
}

PythonValue number_value(std::string_view token) {
  std::string digits;
  for (const char c : token)
    if (c != '_') digits += c;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    if (const auto value = parse_number<std::int64_t>(digits.substr(2), 16)) return {Json(*value), {}};
    return not_read("a number that is not read");
  }
  if (const auto whole = parse_number<std::int64_t>(digits)) return {Json(*whole), {}};
  const bool decimal = digits.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (const auto real = parse_number<double>(digits); decimal && real) return {Json(*real), {}};
  return not_read("a number that is not read");
}

// torch.bfloat16, TaskType.CAUSAL_LM: members of libraries, which a script cannot change.
std::optional<Json> library_constant(std::string_view owner, std::string_view name) {
  constexpr std::array<std::string_view, 4> kTypes{"bfloat16", "float16", "float32", "half"};
  constexpr std::array<std::string_view, 5> kEnums{"TaskType", "IntervalStrategy", "SaveStrategy", "SchedulerType",
                                                   "OptimizerNames"};
  const auto has = [](const auto& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  if (owner == "torch" && has(kTypes, name)) return Json(name == "half" ? "float16" : std::string(name));
  if (owner == "TaskType") return Json(std::string(name));
  if (has(kEnums, owner)) return Json(lower_case(name));
  return {};
}

class Evaluator {
 public:
  Evaluator(std::span<const PythonToken> tokens, const FindName& find_name) : tokens_(tokens), find_name_(find_name) {}

  PythonValue value(size_t begin, size_t end) const {
    if (begin >= end) return not_read("nothing");
    const PythonToken& first = tokens_[begin];
    if (first.kind == Kind::string) return strings(begin, end);
    if (first.kind == Kind::op && first.match + 1 == end) {
      if (first.is("[")) return list(begin + 1, first.match);
      if (first.is("{")) return braces(begin + 1, first.match);
      if (first.is("(")) {
        const bool tuple = begin + 1 == first.match || end_of_item(tokens_, begin + 1, first.match, ",") < first.match;
        return tuple ? list(begin + 1, first.match) : value(begin + 1, first.match);
      }
    }
    if (end - begin == 2 && (first.is("-") || first.is("+")) && tokens_[begin + 1].kind == Kind::number)
      return negated(number_value(tokens_[begin + 1].text), first.is("-"));
    if (end - begin == 3 && first.kind == Kind::name && tokens_[begin + 1].is(".") &&
        tokens_[begin + 2].kind == Kind::name)
      if (auto constant = library_constant(first.text, tokens_[begin + 2].text)) return {std::move(constant), {}};
    if (end - begin == 1) {
      if (first.kind == Kind::number) return number_value(first.text);
      if (first.kind == Kind::name) return name(first.text);
    }
    return computed(begin, end);
  }

 private:
  PythonValue strings(size_t begin, size_t end) const {
    std::string text;
    for (size_t i = begin; i < end; ++i) {
      if (tokens_[i].kind != Kind::string) return computed(begin, end);
      PythonValue part = string_value(tokens_[i].text);
      if (!part.value) return part;
      text += part.value->get<std::string>();
    }
    return {Json(text), {}};
  }

  PythonValue name(std::string_view name) const {
    if (name == "True" || name == "False") return {Json(name == "True"), {}};
    if (name == "None") return {Json(nullptr), {}};
    if (const Json* known = find_name_(name)) return {*known, {}};
    return not_read("the name " + std::string(name) + ", whose value is not a single literal");
  }

  static PythonValue negated(PythonValue number, bool minus) {
    if (!number.value || !minus) return number;
    if (number.value->is_number_integer())
      *number.value = -number.value->get<std::int64_t>();
    else
      *number.value = -number.value->get<double>();
    return number;
  }

  PythonValue list(size_t begin, size_t end) const {
    Json out = Json::array();
    for (size_t i = begin; i < end;) {
      const size_t stop = end_of_item(tokens_, i, end, ",");
      PythonValue item = value(i, stop);
      if (!item.value) return not_read("a list with " + item.reason);
      out.push_back(std::move(*item.value));
      i = stop + 1;
    }
    return {std::move(out), {}};
  }

  PythonValue braces(size_t begin, size_t end) const {
    const bool is_map = begin == end || end_of_item(tokens_, begin, end, ":") < end_of_item(tokens_, begin, end, ",");
    if (!is_map) return list(begin, end);
    SortedJson seen = SortedJson::object();
    Json out = Json::object();
    for (size_t i = begin; i < end;) {
      const size_t stop = end_of_item(tokens_, i, end, ","), colon = end_of_item(tokens_, i, stop, ":");
      const PythonValue key = value(i, colon);
      PythonValue item = colon < stop ? value(colon + 1, stop) : not_read("unpacked values");
      if (!item.value || !key.value || !key.value->is_string())
        return not_read("a dictionary with " + (item.reason.empty() ? "a key that is no text" : item.reason));
      const auto text = key.value->get<std::string>();
      if (!seen.emplace(text, true).second) return not_read("a dictionary with a key that is given twice");
      out.get_ref<Json::object_t&>().emplace_back(text, std::move(*item.value));
      i = stop + 1;
    }
    return {std::move(out), {}};
  }

  PythonValue computed(size_t begin, size_t end) const {
    const auto has = [&](auto&& test) {
      return std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                         tokens_.begin() + static_cast<std::ptrdiff_t>(end), test);
    };
    if (has([](const PythonToken& t) { return t.is_name("for") || t.is_name("lambda") || t.is_name("if"); }))
      return not_read("a computed value");
    for (size_t i = begin + 1; i < end; ++i)
      if (tokens_[i].is("(") && tokens_[i - 1].kind == Kind::name) return not_read("a call");
    return not_read("a computed value");
  }

  std::span<const PythonToken> tokens_;
  const FindName& find_name_;
};

}  // namespace

size_t end_of_item(std::span<const PythonToken> tokens, size_t begin, size_t end, std::string_view separator) {
  for (size_t i = begin; i < end; ++i) {
    if (tokens[i].is(separator)) return i;
    if (tokens[i].kind == Kind::op && tokens[i].match > i) i = tokens[i].match;
  }
  return end;
}

PythonValue python_value(std::span<const PythonToken> tokens, size_t begin, size_t end, const FindName& find_name) {
  return Evaluator(tokens, find_name).value(begin, end);
}

}  // namespace mw::formats
