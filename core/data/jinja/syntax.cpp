// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <initializer_list>

#include "core/base/text.h"
#include "core/data/jinja/lexer.h"

namespace mw::data::jinja {
namespace {

using Kind = TemplateExpression::Kind;
using Node = std::unique_ptr<TemplateExpression>;

constexpr int kMostNestedBlocks = 60;

class Parser {
 public:
  Parser(std::string_view text, const std::string& source) : source_(source), tokens_(tokenize(text, source)) {}

  Body parse() {
    Body body = parse_body({});
    if (current().kind != TemplateTokenKind::end) unexpected("a tag");
    return body;
  }

 private:
  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead(size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  static bool is_symbol(const Token& t, std::string_view text) {
    return t.kind == TemplateTokenKind::symbol && t.text == text;
  }
  bool at_symbol(std::string_view text) const { return is_symbol(current(), text); }
  bool at_name(std::string_view text) const {
    return current().kind == TemplateTokenKind::name && current().text == text;
  }
  bool skip_symbol(std::string_view text) {
    const bool found = at_symbol(text);
    if (found) take();
    return found;
  }
  bool skip_name(std::string_view text) {
    const bool found = at_name(text);
    if (found) take();
    return found;
  }
  void expect_symbol(std::string_view text) {
    if (!skip_symbol(text)) unexpected(std::string(text));
  }
  void expect_block_end() {
    if (current().kind != TemplateTokenKind::block_end) unexpected("%}");
    take();
  }
  std::string take_name(const char* expected) {
    if (current().kind != TemplateTokenKind::name) unexpected(expected);
    return take().text;
  }
  static std::string shown(const Token& t) {
    return t.kind == TemplateTokenKind::end ? "the end of the template" : excerpt(t.text, 40);
  }
  [[noreturn]] void unexpected(const std::string& expected) const {
    fail_template(source_, current().at, "the template cannot be parsed", shown(current()), expected);
  }

  // Nodes.
  Node node(Kind kind, Position at, std::string name = {}) const {
    auto out = std::make_unique<TemplateExpression>();
    out->kind = kind;
    out->at = at;
    out->name = std::move(name);
    return out;
  }
  void deepen(TemplateExpression& parent, const TemplateExpressionPtr& child) const {
    if (child) parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kMostNestedSyntax)
      fail_template(source_, parent.at, "the expression is nested too deeply",
                    "more than " + std::to_string(kMostNestedSyntax) + " levels");
  }
  void add(TemplateExpression& parent, TemplateExpressionPtr child) const {
    deepen(parent, child);
    parent.children.push_back(std::move(child));
  }
  Node constant(Position at, Value value) const {
    Node out = node(Kind::constant, at);
    out->constant = std::move(value);
    return out;
  }
  Node pair(Kind kind, Position at, Node left, Node right, std::string name = {}) const {
    Node out = node(kind, at, std::move(name));
    add(*out, std::move(left));
    add(*out, std::move(right));
    return out;
  }

  // Bounds the recursion of the parser; the depth of nodes bounds that of all others.
  class Nesting {
   public:
    explicit Nesting(const Parser& parser) : parser_(parser) {
      if (++parser.nesting_ > kMostNestedSyntax)
        fail_template(parser.source_, parser.current().at, "the expression is nested too deeply",
                      "more than " + std::to_string(kMostNestedSyntax) + " levels");
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    const Parser& parser_;
  };

  // Expressions, from the loosest operator to the tightest.
  Node expression() { return conditional(); }

  Node conditional() {
    const Nesting nesting(*this);
    Node value = logical_or();
    while (at_name("if")) {
      Node out = node(Kind::conditional, take().at);
      add(*out, logical_or());
      add(*out, std::move(value));
      add(*out, skip_name("else") ? conditional() : nullptr);
      value = std::move(out);
    }
    return value;
  }
  Node logical_or() {
    Node left = logical_and();
    while (at_name("or")) {
      const Position at = take().at;
      Node right = logical_and();
      left = pair(Kind::logical_or, at, std::move(left), std::move(right));
    }
    return left;
  }
  Node logical_and() {
    Node left = logical_not();
    while (at_name("and")) {
      const Position at = take().at;
      Node right = logical_not();
      left = pair(Kind::logical_and, at, std::move(left), std::move(right));
    }
    return left;
  }
  Node logical_not() {
    const Nesting nesting(*this);
    if (!at_name("not")) return comparison();
    Node out = node(Kind::logical_not, take().at);
    add(*out, logical_not());
    return out;
  }
  Node comparison() {
    Node first = sum();
    Node out;
    for (;;) {
      constexpr std::array<std::string_view, 6> kSymbols{"==", "!=", "<", "<=", ">", ">="};
      std::string op;
      const Position at = current().at;
      if (current().kind == TemplateTokenKind::symbol &&
          std::find(kSymbols.begin(), kSymbols.end(), current().text) != kSymbols.end()) {
        op = take().text;
      } else if (skip_name("in")) {
        op = "in";
      } else if (at_name("not") && ahead(1).kind == TemplateTokenKind::name && ahead(1).text == "in") {
        take();
        take();
        op = "not in";
      } else {
        return out ? std::move(out) : std::move(first);
      }
      if (!out) {
        out = node(Kind::compare, at);
        add(*out, std::move(first));
      }
      out->operators.push_back(op);
      add(*out, sum());
    }
  }
  Node sum() {
    Node left = concatenation();
    while (at_symbol("+") || at_symbol("-")) {
      const Token& op = take();
      Node right = concatenation();
      left = pair(Kind::binary, op.at, std::move(left), std::move(right), op.text);
    }
    return left;
  }
  Node concatenation() {
    Node first = product();
    if (!at_symbol("~")) return first;
    Node out = node(Kind::concatenate, current().at);
    add(*out, std::move(first));
    while (skip_symbol("~")) add(*out, product());
    return out;
  }
  Node product() {
    Node left = power();
    while (at_symbol("*") || at_symbol("/") || at_symbol("//") || at_symbol("%")) {
      const Token& op = take();
      Node right = power();
      left = pair(Kind::binary, op.at, std::move(left), std::move(right), op.text);
    }
    return left;
  }
  Node power() {
    Node left = unary(true);
    while (at_symbol("**")) {
      const Position at = take().at;
      Node right = unary(true);
      left = pair(Kind::binary, at, std::move(left), std::move(right), "**");
    }
    return left;
  }
  Node unary(bool with_filters) {
    const Nesting nesting(*this);
    Node out;
    if (at_symbol("-") || at_symbol("+")) {
      const Token& op = take();
      out = node(op.text == "-" ? Kind::negate : Kind::plus, op.at);
      add(*out, unary(false));
    } else {
      out = primary();
    }
    out = postfix(std::move(out));
    return with_filters ? filters_and_tests(std::move(out)) : std::move(out);
  }

  Node primary() {
    const Token& token = current();
    switch (token.kind) {
      case TemplateTokenKind::name:
        return name_or_constant();
      case TemplateTokenKind::string: {
        std::string text;
        while (current().kind == TemplateTokenKind::string) text += take().text;
        return constant(token.at, Value(std::move(text)));
      }
      case TemplateTokenKind::integer:
      case TemplateTokenKind::real:
        return number();
      default:
        break;
    }
    if (at_symbol("(")) {
      take();
      Node out = tuple(")", token.at);
      expect_symbol(")");
      return out;
    }
    if (at_symbol("[")) return list();
    if (at_symbol("{")) return dict();
    unexpected("an expression");
  }
  Node name_or_constant() {
    const Token& token = take();
    if (token.text == "true" || token.text == "True") return constant(token.at, Value(true));
    if (token.text == "false" || token.text == "False") return constant(token.at, Value(false));
    if (token.text == "none" || token.text == "None") return constant(token.at, None{});
    return node(Kind::name, token.at, token.text);
  }
  Node number() {
    const Token& token = take();
    if (token.kind == TemplateTokenKind::real)
      return constant(token.at, Value(parse_number<double>(token.text).value_or(0)));
    const auto value = parse_number<std::int64_t>(token.text);
    if (!value) fail_template(source_, token.at, "the number is too large", token.text, "at most 64 bits");
    return constant(token.at, Value(*value));
  }
  // Several expressions with commas, or one: `closing` ends them.
  Node tuple(std::string_view closing, Position at, bool with_condition = true) {
    std::vector<Node> items;
    bool has_comma = false;
    while (!ends_tuple(closing)) {
      items.push_back(with_condition ? expression() : logical_or());
      if (!skip_symbol(",")) break;
      has_comma = true;
    }
    if (items.size() == 1 && !has_comma) return std::move(items.front());
    if (items.empty() && closing != ")") unexpected("an expression");
    Node out = node(Kind::tuple, at);
    for (Node& item : items) add(*out, std::move(item));
    return out;
  }
  bool ends_tuple(std::string_view closing) const {
    return current().kind == TemplateTokenKind::block_end || current().kind == TemplateTokenKind::output_end ||
           current().kind == TemplateTokenKind::end || (!closing.empty() && at_symbol(closing));
  }
  Node list() {
    Node out = node(Kind::list, take().at);
    while (!at_symbol("]")) {
      if (!out->children.empty()) expect_symbol(",");
      if (at_symbol("]")) break;
      add(*out, expression());
    }
    take();
    return out;
  }
  Node dict() {
    Node out = node(Kind::dict, take().at);
    while (!at_symbol("}")) {
      if (!out->children.empty()) expect_symbol(",");
      if (at_symbol("}")) break;
      add(*out, expression());
      expect_symbol(":");
      add(*out, expression());
    }
    take();
    return out;
  }

  Node postfix(Node subject) {
    for (;;) {
      if (at_symbol("."))
        subject = attribute(std::move(subject));
      else if (at_symbol("["))
        subject = subscript(std::move(subject));
      else if (at_symbol("("))
        subject = call(std::move(subject));
      else
        return subject;
    }
  }
  Node attribute(Node subject) {
    take();
    const Token& token = take();
    if (token.kind == TemplateTokenKind::integer) {
      const auto index = parse_number<std::int64_t>(token.text).value_or(INT64_MAX);
      return pair(Kind::item, token.at, std::move(subject), constant(token.at, Value(index)));
    }
    if (token.kind != TemplateTokenKind::name)
      fail_template(source_, token.at, "the template cannot be parsed", shown(token), "a name behind the dot");
    Node out = node(Kind::attribute, token.at, token.text);
    add(*out, std::move(subject));
    return out;
  }
  Node subscript(Node subject) {
    const Position at = take().at;
    Node start = at_symbol(":") ? nullptr : expression();
    if (at_symbol("]")) {
      take();
      return pair(Kind::item, at, std::move(subject), std::move(start));
    }
    Node out = node(Kind::slice, at);
    add(*out, std::move(subject));
    add(*out, std::move(start));
    expect_symbol(":");
    add(*out, at_symbol("]") || at_symbol(":") ? nullptr : expression());
    add(*out, skip_symbol(":") && !at_symbol("]") ? expression() : nullptr);
    expect_symbol("]");
    return out;
  }
  Node call(Node subject) {
    Node out = node(Kind::call, current().at);
    add(*out, std::move(subject));
    arguments(*out);
    return out;
  }
  void arguments(TemplateExpression& out) {
    expect_symbol("(");
    bool is_first = true;
    while (!at_symbol(")")) {
      if (!is_first) expect_symbol(",");
      is_first = false;
      if (at_symbol(")")) break;
      if (at_symbol("*") || at_symbol("**"))
        fail_template(source_, current().at, "argument unpacking is not supported", current().text);
      if (current().kind == TemplateTokenKind::name && is_symbol(ahead(1), "=")) {
        std::string name = take().text;
        take();
        TemplateExpressionPtr value = expression();
        deepen(out, value);
        out.arguments.named.emplace_back(std::move(name), std::move(value));
      } else {
        if (!out.arguments.named.empty()) unexpected("a named argument");
        TemplateExpressionPtr value = expression();
        deepen(out, value);
        out.arguments.positional.push_back(std::move(value));
      }
    }
    take();
  }

  std::string dotted_name(const char* expected) {
    std::string name = take_name(expected);
    while (skip_symbol(".")) name += "." + take_name(expected);
    return name;
  }
  Node filters_and_tests(Node subject) {
    for (;;) {
      if (at_symbol("|"))
        subject = filter(std::move(subject));
      else if (at_name("is"))
        subject = test(std::move(subject));
      else if (at_symbol("("))
        subject = call(std::move(subject));
      else
        return subject;
    }
  }
  Node filter(Node subject) {
    take();
    Node out = node(Kind::filter, current().at);
    out->name = dotted_name("the name of a filter");
    add(*out, std::move(subject));
    if (at_symbol("(")) arguments(*out);
    return out;
  }
  Node test(Node subject) {
    const Position at = take().at;
    const bool is_negated = skip_name("not");
    Node out = node(Kind::test, current().at);
    out->name = dotted_name("the name of a test");
    add(*out, std::move(subject));
    if (at_symbol("(")) {
      arguments(*out);
    } else if (starts_argument()) {
      if (at_name("is")) unexpected("one test");
      TemplateExpressionPtr argument = postfix(primary());
      deepen(*out, argument);
      out->arguments.positional.push_back(std::move(argument));
    }
    if (!is_negated) return out;
    Node negated = node(Kind::logical_not, at);
    add(*negated, std::move(out));
    return negated;
  }
  bool starts_argument() const {
    switch (current().kind) {
      case TemplateTokenKind::name:
        return !at_name("else") && !at_name("or") && !at_name("and") && !at_name("if");
      case TemplateTokenKind::string:
      case TemplateTokenKind::integer:
      case TemplateTokenKind::real:
        return true;
      default:
        return at_symbol("[") || at_symbol("{");
    }
  }

  // Statements. Reads until a tag named in `ends`, whose name is the current token; its block_begin is taken.
  Body parse_body(std::initializer_list<std::string_view> ends) {
    if (++blocks_ > kMostNestedBlocks)
      fail_template(source_, current().at, "the blocks are nested too deeply",
                    "more than " + std::to_string(kMostNestedBlocks) + " levels");
    Body body;
    for (;;) {
      const Token& token = current();
      if (token.kind == TemplateTokenKind::text) {
        auto s = statement(TemplateStatement::Kind::text, token.at);
        s->text = take().text;
        body.push_back(std::move(s));
      } else if (token.kind == TemplateTokenKind::output_begin) {
        auto s = statement(TemplateStatement::Kind::output, take().at);
        s->expressions.push_back(tuple("", current().at));
        if (current().kind != TemplateTokenKind::output_end) unexpected("}}");
        take();
        body.push_back(std::move(s));
      } else if (token.kind == TemplateTokenKind::block_begin) {
        take();
        if (current().kind == TemplateTokenKind::name &&
            std::find(ends.begin(), ends.end(), current().text) != ends.end())
          break;
        body.push_back(parse_tag());
      } else {
        break;
      }
    }
    if (current().kind == TemplateTokenKind::end && ends.size() > 0) unexpected("{% " + joined(ends, " or ") + " %}");
    --blocks_;
    return body;
  }
  static std::unique_ptr<TemplateStatement> statement(TemplateStatement::Kind kind, Position at) {
    auto out = std::make_unique<TemplateStatement>();
    out->kind = kind;
    out->at = at;
    return out;
  }
  // The body up to {% name %}, which is taken.
  Body block_until(std::string_view name) {
    expect_block_end();
    Body body = parse_body({name});
    take();
    expect_block_end();
    return body;
  }

  std::unique_ptr<const TemplateStatement> parse_tag() {
    const Token token = current();
    const std::string name = take_name("the name of a tag");
    if (name == "if") return parse_if(token.at);
    if (name == "for") return parse_for(token.at);
    if (name == "set") return parse_set(token.at);
    if (name == "macro") return parse_macro(token.at);
    if (name == "call") return parse_call(token.at);
    if (name == "filter") return parse_filter_block(token.at);
    if (name == "with") return parse_with(token.at);
    if (name == "generation") {
      auto s = statement(TemplateStatement::Kind::generation, token.at);
      s->bodies.push_back(block_until("endgeneration"));
      return s;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) fail_template(source_, token.at, "the tag is outside a loop", name, "{% for %} around it");
      expect_block_end();
      return statement(name == "break" ? TemplateStatement::Kind::break_ : TemplateStatement::Kind::continue_,
                       token.at);
    }
    fail_template(source_, token.at, "the tag is unknown or not supported in chat templates", name,
                  "if, for, set, macro, call, filter, with, generation, raw, break or continue");
  }

  std::unique_ptr<const TemplateStatement> parse_if(Position at) {
    auto s = statement(TemplateStatement::Kind::if_, at);
    for (;;) {
      s->expressions.push_back(tuple("", current().at, false));
      expect_block_end();
      s->bodies.push_back(parse_body({"elif", "else", "endif"}));
      const std::string next = take().text;
      if (next == "elif") continue;
      if (next == "else") s->bodies.push_back(block_until("endif"));
      if (next == "endif") expect_block_end();
      return s;
    }
  }

  // One name, or several of an unpacked item, up to the token that ends it.
  AssignmentTarget target_names() {
    AssignmentTarget out;
    const bool in_brackets = skip_symbol("(");
    do {
      if (current().kind != TemplateTokenKind::name || at_name("in")) {
        if (out.is_tuple) break;  // a comma at the end
        unexpected("a variable");
      }
      out.names.push_back(take().text);
      if (at_symbol(",")) out.is_tuple = true;
    } while (skip_symbol(","));
    if (in_brackets) expect_symbol(")");
    return out;
  }

  std::unique_ptr<const TemplateStatement> parse_for(Position at) {
    auto s = statement(TemplateStatement::Kind::for_, at);
    s->target = target_names();
    if (!skip_name("in")) unexpected("in");
    s->expressions.push_back(tuple_without_condition());
    s->expressions.push_back(skip_name("if") ? expression() : nullptr);
    s->is_recursive = skip_name("recursive");
    expect_block_end();
    ++loops_;
    s->bodies.push_back(parse_body({"endfor", "else"}));
    --loops_;
    if (take().text == "else")
      s->bodies.push_back(block_until("endfor"));
    else
      expect_block_end();
    return s;
  }
  // The iterable of a loop: `if` behind it is the filter of the loop.
  Node tuple_without_condition() {
    const Position at = current().at;
    Node first = logical_or();
    if (!at_symbol(",")) return first;
    Node out = node(Kind::tuple, at);
    add(*out, std::move(first));
    while (skip_symbol(",") && current().kind != TemplateTokenKind::block_end) add(*out, logical_or());
    return out;
  }

  std::unique_ptr<const TemplateStatement> parse_set(Position at) {
    auto s = statement(TemplateStatement::Kind::set, at);
    if (current().kind == TemplateTokenKind::name && is_symbol(ahead(1), ".")) {
      s->target.names.push_back(take().text);
      take();
      s->target.attribute = take_name("an attribute");
    } else {
      s->target = target_names();
    }
    if (skip_symbol("=")) {
      s->expressions.push_back(tuple("", current().at));
      expect_block_end();
      return s;
    }
    s->kind = TemplateStatement::Kind::set_block;
    if (at_symbol("|")) {  // filters of the block; their subject is its text
      Node subject = node(Kind::name, current().at, "(block)");
      while (at_symbol("|")) subject = filter(std::move(subject));
      s->expressions.push_back(std::move(subject));
    }
    const int loops = std::exchange(loops_, 0);
    s->bodies.push_back(block_until("endset"));
    loops_ = loops;
    return s;
  }

  std::vector<MacroParameter> parameters() {
    std::vector<MacroParameter> out;
    expect_symbol("(");
    while (!at_symbol(")")) {
      if (!out.empty()) expect_symbol(",");
      if (at_symbol(")")) break;
      MacroParameter p{take_name("the name of a parameter"), nullptr};
      if (skip_symbol("="))
        p.fallback = expression();
      else if (!out.empty() && out.back().fallback)
        unexpected("a default value");
      out.push_back(std::move(p));
    }
    take();
    return out;
  }
  // The special names are collected by the lexer's tokens: a macro accepts further arguments only if it reads them.
  void read_macro_body(Macro& macro, std::string_view end) {
    const size_t first = at_;
    const int loops = std::exchange(loops_, 0);
    macro.body = block_until(end);
    loops_ = loops;
    for (size_t i = first; i < at_; ++i) {
      if (tokens_[i].kind != TemplateTokenKind::name) continue;
      macro.uses_varargs |= tokens_[i].text == "varargs";
      macro.uses_kwargs |= tokens_[i].text == "kwargs";
      macro.uses_caller |= tokens_[i].text == "caller";
    }
  }
  std::unique_ptr<const TemplateStatement> parse_macro(Position at) {
    auto s = statement(TemplateStatement::Kind::macro, at);
    s->macro.name = take_name("the name of the macro");
    s->macro.parameters = parameters();
    read_macro_body(s->macro, "endmacro");
    return s;
  }
  std::unique_ptr<const TemplateStatement> parse_call(Position at) {
    auto s = statement(TemplateStatement::Kind::call_block, at);
    s->macro.name = "caller";
    if (at_symbol("(")) s->macro.parameters = parameters();
    s->expressions.push_back(expression());
    if (s->expressions.front()->kind != Kind::call)
      fail_template(source_, at, "the call block does not call a macro", "{% call %}", "{% call name(...) %}");
    read_macro_body(s->macro, "endcall");
    return s;
  }
  std::unique_ptr<const TemplateStatement> parse_filter_block(Position at) {
    auto s = statement(TemplateStatement::Kind::filter_block, at);
    Node subject = node(Kind::name, at, "(block)");
    do {
      const Position here = current().at;
      Node out = node(Kind::filter, here);
      out->name = dotted_name("the name of a filter");
      add(*out, std::move(subject));
      if (at_symbol("(")) arguments(*out);
      subject = std::move(out);
    } while (skip_symbol("|"));
    s->expressions.push_back(std::move(subject));
    const int loops = std::exchange(loops_, 0);
    s->bodies.push_back(block_until("endfilter"));
    loops_ = loops;
    return s;
  }
  std::unique_ptr<const TemplateStatement> parse_with(Position at) {
    auto s = statement(TemplateStatement::Kind::with, at);
    while (current().kind != TemplateTokenKind::block_end) {
      if (!s->targets.empty()) expect_symbol(",");
      s->targets.push_back({.names = {take_name("a variable")}});
      expect_symbol("=");
      s->expressions.push_back(expression());
    }
    s->bodies.push_back(block_until("endwith"));
    return s;
  }

  const std::string& source_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int blocks_ = 0, loops_ = 0;
  mutable int nesting_ = 0;
};

}  // namespace

Body parse_template(std::string_view text, const std::string& source) {
  return Parser(text, source).parse();
}

}  // namespace mw::data::jinja
