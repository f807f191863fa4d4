// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/partition_spec.h"

// The text form of a PartitionSpec.
#include <cctype>

#include "core/base/error.h"

namespace mw::mesh {
namespace {

std::string dim_text(const std::vector<std::string>& axes) {
  if (axes.empty()) return "-";
  if (axes.size() == 1) return axes[0];
  std::string text;
  for (const std::string& axis : axes) text += (text.empty() ? "(" : ", ") + axis;
  return text + ")";
}

// spec: [P | PartitionSpec] "(" [dim {"," dim} [","]] ")";  dim: "-" | None | name | "(" [name {"," name} [","]] ")"
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  PartitionSpec spec() {
    constexpr size_t kMostLength = 1024;
    if (text_.size() > kMostLength) fail("at most 1024 characters");
    skip();
    if (peek() != '(') {
      const std::string head = word();
      if (head != "P" && head != "PartitionSpec") fail("( at the start");
    }
    PartitionSpec spec;
    expect('(');
    while (!accept(')')) {
      spec.dims.push_back(dim());
      if (!accept(',') && peek() != ')') fail(", or )");
    }
    skip();
    if (at_ != text_.size()) fail("nothing more after )");
    return spec;
  }

 private:
  std::vector<std::string> dim() {
    if (accept('-')) return {};
    std::vector<std::string> axes;
    if (!accept('(')) {
      if (std::string name = axis(); name != "None") axes.push_back(std::move(name));
      return axes;
    }
    while (!accept(')')) {
      axes.push_back(axis());
      if (!accept(',') && peek() != ')') fail(", or )");
    }
    return axes;
  }

  std::string axis() {
    const char quote = peek() == '\'' || peek() == '"' ? peek() : '\0';
    if (quote) ++at_;
    std::string name = word();
    if (name.empty()) fail("the name of an axis, - or (");
    if (quote && (at_ >= text_.size() || text_[at_++] != quote)) fail("the closing quote");
    return name;
  }

  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string(1, c));
  }
  [[noreturn]] void fail(const std::string& expected) {
    throw Error("SPEC-SYNTAX", "not a PartitionSpec",
                {.place = "character " + std::to_string(at_ + 1),
                 .found = std::string(text_.substr(0, 80)),
                 .expected = expected,
                 .fix = "write one entry per dimension, as in (tp, fsdp, -)"});
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_text(const PartitionSpec& spec) {
  std::string text = "(";
  for (size_t i = 0; i < spec.dims.size(); ++i) text += (i ? ", " : "") + dim_text(spec.dims[i]);
  return text + ")";
}

PartitionSpec parse_spec(std::string_view text) {
  return Parser(text).spec();
}

}  // namespace mw::mesh
