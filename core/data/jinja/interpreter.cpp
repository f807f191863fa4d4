// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/interpreter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/data/jinja/characters.h"

namespace mw::data::jinja {
namespace {

using Kind = Expression::Kind;

constexpr std::array<std::string_view, 5> kFunctions{"range", "namespace", "dict", "raise_exception", "strftime_now"};
constexpr std::array<std::string_view, 5> kDictMethods{"get", "items", "keys", "values", "copy"};
constexpr std::array<std::string_view, 13> kChanging{"append",  "extend", "insert",  "pop",    "remove",
                                                     "clear",   "sort",   "reverse", "update", "setdefault",
                                                     "popitem", "add",    "discard"};
constexpr std::int64_t kLongestRange = 100'000;  // of Jinja's sandbox

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value undefined(std::string what) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(what))});
}

Value function(Callable::Kind kind, const std::string& name, const Value& self = {}) {
  return Value(std::make_shared<const Callable>(
      Callable{.kind = kind, .name = name, .self = self, .depth = depth_of(self) + 1}));
}

std::string what_of(const Value& value) {
  if (const Undefined* u = value.undefined()) return u->what ? *u->what : "an undefined value";
  return type_name(value);
}

std::string formatted_time(const std::string& format, std::time_t now) {
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 1024> out{};
  return {out.data(), std::strftime(out.data(), out.size(), format.c_str(), &local)};
}

}  // namespace

class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& in) : in_(in) {
    if (++in.depth_ > in.limits_.depth) {
      --in.depth_;
      in.fail("calls and expressions are nested too deeply",
              "more than " + std::to_string(in.limits_.depth) + " levels");
    }
    if (++in.steps_ > in.limits_.steps) {
      --in.depth_;
      in.fail("the template takes too long", "more than " + std::to_string(in.limits_.steps) + " steps");
    }
  }
  ~Depth() { --in_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& in_;
};

Interpreter::Interpreter(const std::string& source, const Limits& limits, std::time_t now)
    : source_(source), limits_(limits), now_(now) {}

void Interpreter::define(std::string name, Value value) {
  scopes_.front().emplace_back(std::move(name), std::move(value));
}

std::string Interpreter::run(const Body& body) {
  std::string out;
  out_ = &out;
  run_body(body);
  return out;
}

void Interpreter::fail(const std::string& message, const std::string& found, const std::string& expected) const {
  fail_template(source_, at_, message, excerpt(found), expected);
}

void Interpreter::charge(std::int64_t bytes) {
  bytes_ += bytes;
  if (bytes_ > limits_.bytes)
    fail("the template makes too much text", "more than " + std::to_string(limits_.bytes) + " bytes");
}

Value Interpreter::text(std::string value) {
  charge(static_cast<std::int64_t>(value.size()) + 32);
  return Value(std::move(value));
}
Value Interpreter::list(Values items, ListKind kind) {
  charge(static_cast<std::int64_t>(items.size() * sizeof(Value)) + 64);
  Value out = make_list(std::move(items), kind);
  if (depth_of(out) > kMostNestedValues) fail("a value is nested too deeply");
  if (weight_of(out) > limits_.bytes) fail("a value is too large when it is written");
  return out;
}
Value Interpreter::dict(std::vector<std::pair<Value, Value>> items) {
  charge(static_cast<std::int64_t>(items.size() * 2 * sizeof(Value)) + 64);
  Value out = make_dict(std::move(items));
  if (depth_of(out) > kMostNestedValues) fail("a value is nested too deeply");
  if (weight_of(out) > limits_.bytes) fail("a value is too large when it is written");
  return out;
}

bool Interpreter::same(const Value& a, const Value& b) {
  charge(std::min(weight_of(a), weight_of(b)));
  return equal(a, b);
}
std::string Interpreter::str(const Value& value) {
  charge(weight_of(value));
  return to_str(value);
}

// Statements.

Interpreter::LoopControl Interpreter::run_body(const Body& body) {
  for (const auto& s : body)
    if (const LoopControl control = run_statement(*s); control != LoopControl::next) return control;
  return LoopControl::next;
}

Interpreter::LoopControl Interpreter::run_statement(const Statement& s) {
  const Depth depth(*this);
  at_ = s.at;
  switch (s.kind) {
    case Statement::Kind::text:
      write(s.text);
      break;
    case Statement::Kind::output: {
      const Value value = eval(*s.expressions.front());
      if (value.text())
        write(*value.text());
      else
        write(str(value));
      break;
    }
    case Statement::Kind::if_:
      return run_if(s);
    case Statement::Kind::for_:
      run_for(s);
      break;
    case Statement::Kind::set:
    case Statement::Kind::set_block:
    case Statement::Kind::filter_block:
      run_set(s);
      break;
    case Statement::Kind::macro:
      assign(s.macro.name, make_macro(s.macro));
      break;
    case Statement::Kind::call_block:
      run_call_block(s);
      break;
    case Statement::Kind::with: {
      Variables scope;
      for (size_t i = 0; i < s.targets.size(); ++i)
        scope.emplace_back(s.targets[i].names.front(), eval(*s.expressions[i]));
      scopes_.push_back(std::move(scope));
      const LoopControl control = run_body(s.bodies.front());
      scopes_.pop_back();
      return control;
    }
    case Statement::Kind::generation: {
      const size_t begin = out_->size();
      scopes_.emplace_back();
      const LoopControl control = run_body(s.bodies.front());
      scopes_.pop_back();
      if (!is_captured_) generated_.push_back({begin, out_->size()});
      return control;
    }
    case Statement::Kind::break_:
      return LoopControl::break_;
    case Statement::Kind::continue_:
      return LoopControl::continue_;
  }
  return LoopControl::next;
}

Interpreter::LoopControl Interpreter::run_if(const Statement& s) {
  for (size_t i = 0; i < s.expressions.size(); ++i)
    if (is_true(eval(*s.expressions[i]))) return run_body(s.bodies[i]);
  return s.bodies.size() > s.expressions.size() ? run_body(s.bodies.back()) : LoopControl::next;
}

void Interpreter::run_for(const Statement& s) {
  run_loop(s, eval(*s.expressions.front()), 0);
}

void Interpreter::run_loop(const Statement& s, const Value& iterable, int level) {
  at_ = s.at;
  Values items = items_of(iterable);
  charge(static_cast<std::int64_t>(items.size() * sizeof(Value)));
  if (s.expressions[1]) {
    Values kept;
    for (Value& one : items) {
      scopes_.emplace_back();
      unpack(s.target, one);
      if (is_true(eval(*s.expressions[1]))) kept.push_back(std::move(one));
      scopes_.pop_back();
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    if (s.bodies.size() < 2) return;
    scopes_.emplace_back();
    run_body(s.bodies[1]);
    scopes_.pop_back();
    return;
  }
  auto loop = std::make_shared<Loop>();
  for (const Value& one : items) loop->depth = std::max(loop->depth, depth_of(one) + 1);
  loop->items = std::make_shared<const Values>(std::move(items));
  loop->level = level;
  loop->recursive = s.is_recursive ? &s : nullptr;
  const Value as_value{std::shared_ptr<const Loop>(loop)};
  for (; loop->index < loop->items->size(); ++loop->index) {
    const Depth depth(*this);
    scopes_.emplace_back();
    assign("loop", as_value);
    unpack(s.target, (*loop->items)[loop->index]);
    const LoopControl control = run_body(s.bodies.front());
    scopes_.pop_back();
    if (control == LoopControl::break_) break;
  }
}

void Interpreter::run_set(const Statement& s) {
  Value value;
  if (s.kind == Statement::Kind::set) {
    value = eval(*s.expressions.front());
  } else {
    value = text(captured(s.bodies.front()));
    if (!s.expressions.empty()) {
      scopes_.push_back({{"(block)", value}});
      value = eval(*s.expressions.front());
      scopes_.pop_back();
    }
    if (s.kind == Statement::Kind::filter_block) return write(str(value));
  }
  if (s.target.attribute.empty()) return unpack(s.target, value);
  at_ = s.at;
  const Value subject = lookup(s.target.names.front());
  Namespace* const names = subject.names();
  if (!names)
    fail("an attribute can be set on a namespace only", s.target.names.front() + " is " + what_of(subject),
         "{% set " + s.target.names.front() + " = namespace() %}");
  charge(static_cast<std::int64_t>(sizeof(Value)));
  for (auto& [name, old] : names->items)
    if (name == s.target.attribute) {
      old = std::move(value);
      return;
    }
  names->items.emplace_back(s.target.attribute, std::move(value));
}

void Interpreter::run_call_block(const Statement& s) {
  const Expression& called = *s.expressions.front();
  const Value target = eval(*called.children.front());
  Arguments arguments = eval_arguments(called.arguments);
  arguments.named.emplace_back("caller", make_macro(s.macro));
  at_ = s.at;
  write(str(call(target, arguments)));
}

void Interpreter::write(const std::string& text) {
  charge(static_cast<std::int64_t>(text.size()));
  *out_ += text;
}

std::string Interpreter::captured(const Body& body) {
  std::string out;
  std::string* const before = std::exchange(out_, &out);
  const bool was_captured = std::exchange(is_captured_, true);
  scopes_.emplace_back();
  run_body(body);
  scopes_.pop_back();
  is_captured_ = was_captured;
  out_ = before;
  return out;
}

// Variables.

const Value* Interpreter::find(const std::string& name) const {
  const auto in = [&](const Variables& variables) -> const Value* {
    for (auto v = variables.rbegin(); v != variables.rend(); ++v)
      if (v->first == name) return &v->second;
    return nullptr;
  };
  for (size_t i = scopes_.size(); i-- > std::max<size_t>(frame_, 1);)
    if (const Value* value = in(scopes_[i])) return value;
  if (enclosing_)
    if (const Value* value = in(*enclosing_)) return value;
  return in(scopes_.front());
}

Value Interpreter::lookup(const std::string& name) const {
  if (const Value* value = find(name)) return *value;
  if (is_among(kFunctions, name)) return function(Callable::Kind::function, name);
  return undefined("'" + name + "' is undefined");
}

void Interpreter::assign(const std::string& name, Value value) {
  charge(static_cast<std::int64_t>(sizeof(Value)));
  for (auto& [known, old] : scopes_.back())
    if (known == name) {
      old = std::move(value);
      return;
    }
  scopes_.back().emplace_back(name, std::move(value));
}

void Interpreter::unpack(const Target& target, const Value& value) {
  if (!target.is_tuple) return assign(target.names.front(), value);
  const Values items = items_of(value);
  if (items.size() != target.names.size())
    fail("the number of values to unpack is wrong", std::to_string(items.size()), std::to_string(target.names.size()));
  for (size_t i = 0; i < items.size(); ++i) assign(target.names[i], items[i]);
}

// Macros.

Value Interpreter::make_macro(const Macro& macro) {
  auto enclosing = std::make_shared<Variables>();
  if (enclosing_) *enclosing = *enclosing_;
  for (size_t i = std::max<size_t>(frame_, 1); i < scopes_.size(); ++i)
    enclosing->insert(enclosing->end(), scopes_[i].begin(), scopes_[i].end());
  charge(static_cast<std::int64_t>(enclosing->size() * (sizeof(Value) + sizeof(std::string))));
  int depth = 0;
  for (const auto& [name, value] : *enclosing) depth = std::max(depth, depth_of(value));
  if (depth >= kMostNestedValues) fail("a macro is nested too deeply", macro.name);
  return Value(std::make_shared<const Callable>(Callable{.kind = Callable::Kind::macro,
                                                         .name = macro.name,
                                                         .macro = &macro,
                                                         .enclosing = std::move(enclosing),
                                                         .depth = depth + 1}));
}

Value Interpreter::call_macro(const Callable& callable, const Arguments& arguments) {
  const Macro& macro = *callable.macro;
  const Position called_at = at_;
  const size_t most = macro.parameters.size();
  if (arguments.positional.size() > most && !macro.uses_varargs)
    fail("the macro takes fewer arguments", macro.name + " with " + std::to_string(arguments.positional.size()),
         "at most " + std::to_string(most));
  std::vector<const Value*> given(most, nullptr);
  for (size_t i = 0; i < std::min(most, arguments.positional.size()); ++i) given[i] = &arguments.positional[i];
  Variables scope;
  std::vector<std::pair<Value, Value>> rest;
  for (const auto& [name, value] : arguments.named) {
    const auto p = std::find_if(macro.parameters.begin(), macro.parameters.end(),
                                [&key = name](const Parameter& x) { return x.name == key; });
    if (p != macro.parameters.end())
      given[static_cast<size_t>(p - macro.parameters.begin())] = &value;
    else if (name == "caller" && macro.uses_caller)
      scope.emplace_back(name, value);
    else if (macro.uses_kwargs)
      rest.emplace_back(text(name), value);
    else
      fail("the macro has no such argument", macro.name + "(" + name + "=...)");
  }
  if (macro.uses_varargs)
    scope.emplace_back("varargs", list(arguments.positional.size() > most
                                           ? Values(arguments.positional.begin() + static_cast<std::ptrdiff_t>(most),
                                                    arguments.positional.end())
                                           : Values{},
                                       ListKind::tuple));
  if (macro.uses_kwargs) scope.emplace_back("kwargs", dict(std::move(rest)));
  const size_t frame = std::exchange(frame_, scopes_.size());
  const auto enclosing = std::exchange(enclosing_, callable.enclosing);
  scopes_.push_back(std::move(scope));
  for (size_t i = 0; i < most; ++i) {
    const Parameter& p = macro.parameters[i];
    assign(p.name, given[i]     ? *given[i]
                   : p.fallback ? eval(*p.fallback)
                                : undefined("parameter '" + p.name + "' was not provided"));
  }
  std::string out;
  std::string* const before = std::exchange(out_, &out);
  const bool was_captured = std::exchange(is_captured_, true);
  run_body(macro.body);
  is_captured_ = was_captured;
  out_ = before;
  scopes_.pop_back();
  enclosing_ = enclosing;
  frame_ = frame;
  at_ = called_at;
  return text(std::move(out));
}

// Expressions.

Value Interpreter::eval(const Expression& e) {
  const Depth depth(*this);
  at_ = e.at;
  Value out = eval_node(e);
  at_ = e.at;
  return out;
}

Value Interpreter::eval_node(const Expression& e) {
  const auto child = [&](size_t i) { return eval(*e.children[i]); };
  const auto children = [&] {
    Values out;
    for (const auto& c : e.children) out.push_back(eval(*c));
    at_ = e.at;
    return out;
  };
  switch (e.kind) {
    case Kind::constant:
      return e.constant;
    case Kind::name:
      return lookup(e.name);
    case Kind::list:
      return list(children());
    case Kind::tuple:
      return list(children(), ListKind::tuple);
    case Kind::dict:
      return eval_dict(e);
    case Kind::attribute: {
      const Value subject = child(0);
      at_ = e.at;
      return attribute(subject, e.name);
    }
    case Kind::item: {
      const Value subject = child(0), key = child(1);
      at_ = e.at;
      return item(subject, key);
    }
    case Kind::slice:
      return eval_slice(e);
    case Kind::call: {
      const Value target = child(0);
      const Arguments arguments = eval_arguments(e.arguments);
      at_ = e.at;
      return call(target, arguments);
    }
    case Kind::filter: {
      const Value subject = child(0);
      const Arguments arguments = eval_arguments(e.arguments);
      at_ = e.at;
      return filter(e.name, subject, arguments);
    }
    case Kind::test: {
      const Value subject = child(0);
      const Arguments arguments = eval_arguments(e.arguments);
      at_ = e.at;
      return Value(test(e.name, subject, arguments));
    }
    case Kind::negate:
    case Kind::plus: {
      const Value value = child(0);
      at_ = e.at;
      if (!value.is_number()) fail("the sign needs a number", what_of(value));
      const std::int64_t sign = e.kind == Kind::negate ? -1 : 1;
      return value.real() ? Value(static_cast<double>(sign) * *value.real())
                          : multiply(Value(sign), Value(*value.as_integer()));
    }
    case Kind::logical_not:
      return Value(!is_true(child(0)));
    case Kind::logical_and: {
      Value left = child(0);
      return is_true(left) ? child(1) : left;
    }
    case Kind::logical_or: {
      Value left = child(0);
      return is_true(left) ? left : child(1);
    }
    case Kind::binary:
      return eval_binary(e);
    case Kind::concatenate: {
      std::string out;
      for (const auto& c : e.children) {
        const std::string part = str(eval(*c));
        charge(static_cast<std::int64_t>(part.size()));
        out += part;
      }
      return text(std::move(out));
    }
    case Kind::compare:
      return eval_compare(e);
    case Kind::conditional:
      if (is_true(child(0))) return child(1);
      return e.children[2] ? child(2) : undefined("the condition is false and there is no else");
  }
  return {};
}

Value Interpreter::eval_dict(const Expression& e) {
  std::vector<std::pair<Value, Value>> items;
  for (size_t i = 0; i < e.children.size(); i += 2) {
    Value key = eval(*e.children[i]), value = eval(*e.children[i + 1]);
    const auto known = std::find_if(items.begin(), items.end(), [&](const auto& x) { return equal(x.first, key); });
    if (known != items.end())
      known->second = std::move(value);
    else
      items.emplace_back(std::move(key), std::move(value));
  }
  at_ = e.at;
  return dict(std::move(items));
}

Value Interpreter::eval_slice(const Expression& e) {
  const Value subject = eval(*e.children[0]);
  const auto bound_at = [&](size_t i) -> std::optional<std::int64_t> {
    if (!e.children[i]) return std::nullopt;
    const Value value = eval(*e.children[i]);
    at_ = e.at;
    return value.is_none() ? std::nullopt : std::optional(integer(value, "the bound of a slice"));
  };
  const auto start = bound_at(1), stop = bound_at(2), step = bound_at(3);
  at_ = e.at;
  if (step == 0) fail("the step of a slice is 0");
  const Characters characters(subject.text() ? std::string_view(*subject.text()) : std::string_view());
  const bool is_list =
      subject.list() && subject.list()->kind <= ListKind::range && subject.list()->kind != ListKind::view;
  if (!subject.text() && !is_list)
    return subject.is_undefined() ? (fail("an undefined value has no slices", what_of(subject)), Value())
                                  : undefined("a slice of " + type_name(subject));
  const auto n = static_cast<std::int64_t>(subject.text() ? characters.size() : subject.list()->items.size());
  const std::int64_t by = step.value_or(1), low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
  const auto clamped = [&](std::int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
  const std::int64_t first = start    ? clamped(*start)
                             : by > 0 ? low
                                      : high,
                     last = stop     ? clamped(*stop)
                            : by > 0 ? high
                                     : low;
  Values items;
  std::string out;
  for (std::int64_t i = first; by > 0 ? i < last : i > last;) {
    if (subject.text())
      out += characters[static_cast<size_t>(i)];
    else
      items.push_back(subject.list()->items[static_cast<size_t>(i)]);
    if (by > 0 ? by >= last - i : by <= last - i) break;
    i += by;
  }
  return subject.text() ? text(std::move(out)) : list(std::move(items), subject.list()->kind);
}

Arguments Interpreter::eval_arguments(const CallArguments& arguments) {
  Arguments out;
  for (const auto& a : arguments.positional) out.positional.push_back(eval(*a));
  for (const auto& [name, a] : arguments.named) out.named.emplace_back(name, eval(*a));
  return out;
}

Value Interpreter::eval_compare(const Expression& e) {
  Value left = eval(*e.children.front());
  for (size_t i = 0; i < e.operators.size(); ++i) {
    const Value right = eval(*e.children[i + 1]);
    at_ = e.at;
    const std::string& op = e.operators[i];
    bool holds = false;
    if (op == "==" || op == "!=")
      holds = same(left, right) == (op == "==");
    else if (op == "in" || op == "not in")
      holds = contains(right, left) == (op == "in");
    else if (op == "<" || op == ">")
      holds = op == "<" ? is_less(left, right) : is_less(right, left);
    else
      holds = op == "<=" ? !is_less(right, left) : !is_less(left, right);
    if (!holds) return Value(false);
    left = right;
  }
  return Value(true);
}

bool Interpreter::is_less(const Value& a, const Value& b) {
  charge(std::min(weight_of(a), weight_of(b)));
  const auto order = compare(a, b);
  if (!order) fail("the values have no order", what_of(a) + " and " + what_of(b), "two numbers or two strings");
  return *order < 0;
}

bool Interpreter::contains(const Value& container, const Value& value) {
  if (const std::string* whole = container.text()) {
    if (!value.text()) fail("'in' a string needs a string", what_of(value));
    charge(static_cast<std::int64_t>(whole->size()));
    return whole->find(*value.text()) != std::string::npos;
  }
  if (const Dict* d = container.dict()) {
    charge(static_cast<std::int64_t>(d->items.size()));
    return d->find(value) != nullptr;
  }
  const Values items = items_of(container);
  charge(static_cast<std::int64_t>(items.size() * sizeof(Value)));
  return std::any_of(items.begin(), items.end(), [&](const Value& one) { return same(one, value); });
}

Value Interpreter::eval_binary(const Expression& e) {
  const Value a = eval(*e.children[0]), b = eval(*e.children[1]);
  at_ = e.at;
  if (e.name == "+") return add(a, b);
  if (e.name == "*") return multiply(a, b);
  return arithmetic(e.name, a, b);
}

Value Interpreter::add(const Value& a, const Value& b) {
  if (a.text() && b.text()) {
    charge(static_cast<std::int64_t>(a.text()->size() + b.text()->size()));
    return text(*a.text() + *b.text());
  }
  const auto is_list = [](const Value& v) { return v.list() && v.list()->kind <= ListKind::tuple; };
  if (is_list(a) && is_list(b) && a.list()->kind == b.list()->kind) {
    Values items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    return list(std::move(items), a.list()->kind);
  }
  return arithmetic("+", a, b);
}

Value Interpreter::multiply(const Value& a, const Value& b) {
  if (a.as_integer() && !b.is_number()) return multiply(b, a);
  const bool is_list = a.list() && a.list()->kind <= ListKind::tuple;
  if (!b.as_integer() || (!a.text() && !is_list)) return arithmetic("*", a, b);
  const std::int64_t n = std::max<std::int64_t>(*b.as_integer(), 0);
  const auto size = static_cast<std::int64_t>(a.text() ? a.text()->size() : a.list()->items.size() * sizeof(Value));
  if (size > 0 && n > limits_.bytes / size) charge(limits_.bytes + 1);
  charge(size * n);
  if (a.text()) {
    std::string out;
    for (std::int64_t i = 0; size > 0 && i < n; ++i) out += *a.text();
    return text(std::move(out));
  }
  Values items;
  for (std::int64_t i = 0; size > 0 && i < n; ++i)
    items.insert(items.end(), a.list()->items.begin(), a.list()->items.end());
  return list(std::move(items), a.list()->kind);
}

Value Interpreter::arithmetic(const std::string& op, const Value& a, const Value& b) {
  if (op == "%" && a.text()) fail("formatting by % is not supported", *a.text(), "the operators ~ or +");
  if (!a.is_number() || !b.is_number())
    fail("the operator " + op + " does not apply to these values", what_of(a) + " and " + what_of(b));
  const bool divides = op == "/" || op == "//" || op == "%";
  if (divides && b.as_real() == 0) fail("division by zero", op);
  if (op == "/" || a.real() || b.real() || (op == "**" && b.as_real() < 0)) {
    const double x = a.as_real(), y = b.as_real();
    if (op == "+") return Value(x + y);
    if (op == "-") return Value(x - y);
    if (op == "*") return Value(x * y);
    if (op == "/") return Value(x / y);
    if (op == "//") return Value(std::floor(x / y));
    if (op == "**") return Value(std::pow(x, y));
    const double rest = std::fmod(x, y);
    return Value(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }
  const std::int64_t x = *a.as_integer(), y = *b.as_integer();
  std::int64_t out = 0;
  bool overflows = false;
  if (op == "+") {
    overflows = __builtin_add_overflow(x, y, &out);
  } else if (op == "-") {
    overflows = __builtin_sub_overflow(x, y, &out);
  } else if (op == "*") {
    overflows = __builtin_mul_overflow(x, y, &out);
  } else if (op == "**") {
    out = 1;
    const bool is_unit = x == 0 || x == 1 || x == -1;
    for (std::int64_t i = 0; i < (is_unit ? std::min<std::int64_t>(y, 2 - (y & 1)) : y) && !overflows; ++i)
      overflows = __builtin_mul_overflow(out, x, &out);
  } else if (y == -1) {
    overflows = op == "//" && __builtin_sub_overflow(std::int64_t{0}, x, &out);
  } else {
    const std::int64_t rest = x % y, adjusted = rest != 0 && (rest < 0) != (y < 0) ? 1 : 0;
    out = op == "//" ? x / y - adjusted : rest + adjusted * y;
  }
  if (overflows) fail("the number is too large", op, "at most 64 bits");
  return Value(out);
}

// Attributes, items and iteration.

Value Interpreter::attribute(const Value& subject, const std::string& name) {
  if (subject.is_undefined()) fail("an undefined value has no attributes", what_of(subject) + ", ." + name);
  if (const Loop* loop = subject.loop()) {
    const auto n = static_cast<std::int64_t>(loop->items->size()), i = static_cast<std::int64_t>(loop->index);
    const auto neighbour = [&](std::int64_t j) {
      return j >= 0 && j < n ? (*loop->items)[static_cast<size_t>(j)] : undefined("there is no such item of the loop");
    };
    if (name == "index") return Value(i + 1);
    if (name == "index0") return Value(i);
    if (name == "revindex") return Value(n - i);
    if (name == "revindex0") return Value(n - i - 1);
    if (name == "first") return Value(i == 0);
    if (name == "last") return Value(i == n - 1);
    if (name == "length") return Value(n);
    if (name == "previtem") return neighbour(i - 1);
    if (name == "nextitem") return neighbour(i + 1);
    if (name == "depth") return Value(std::int64_t{loop->level} + 1);
    if (name == "depth0") return Value(std::int64_t{loop->level});
    if (name == "cycle") return function(Callable::Kind::method, name, subject);
    fail("this attribute of loop is not supported", "loop." + name);
  }
  if (subject.text() && has_text_method(name)) return function(Callable::Kind::method, name, subject);
  if (subject.dict() && is_among(kDictMethods, name)) return function(Callable::Kind::method, name, subject);
  if (subject.list() && (name == "index" || name == "count" || name == "copy"))
    return function(Callable::Kind::method, name, subject);
  if ((subject.list() || subject.dict()) && is_among(kChanging, name) &&
      !(subject.dict() && subject.dict()->find(name)))
    fail("lists and dicts of a template cannot be changed, as in transformers", "." + name, "a new list, e.g. a + [b]");
  return item(subject, text(name));
}

Value Interpreter::item(const Value& subject, const Value& key) {
  if (subject.is_undefined()) fail("an undefined value has no items", what_of(subject) + ", [" + repr(key) + "]");
  const auto missing = [&] { return undefined("'" + type_name(subject) + "' has no item " + excerpt(repr(key), 60)); };
  if (const Dict* d = subject.dict()) {
    charge(static_cast<std::int64_t>(d->items.size()));
    if (const Value* value = key.text() ? d->find(std::string_view(*key.text())) : d->find(key)) return *value;
    return missing();
  }
  if (Namespace* names = subject.names()) {
    if (key.text())
      for (const auto& [name, value] : names->items)
        if (name == *key.text()) return value;
    return missing();
  }
  const auto index = key.as_integer();
  if (!index) return missing();
  const auto within = [&](size_t size) -> std::optional<size_t> {
    const auto n = static_cast<std::int64_t>(size);
    const std::int64_t i = *index < 0 ? *index + n : *index;
    return i >= 0 && i < n ? std::optional(static_cast<size_t>(i)) : std::nullopt;
  };
  if (const std::string* whole = subject.text()) {
    const Characters characters(*whole);
    const auto i = within(characters.size());
    return i ? text(std::string(characters[*i])) : missing();
  }
  if (const List* l = subject.list(); l && l->kind != ListKind::view && l->kind != ListKind::generator)
    if (const auto i = within(l->items.size())) return l->items[*i];
  return missing();
}

Values Interpreter::items_of(const Value& value) {
  if (value.is_undefined()) return {};
  if (const List* l = value.list()) {
    if (l->kind != ListKind::generator) return l->items;
    const size_t first = std::exchange(l->used, l->items.size());
    return {l->items.begin() + static_cast<std::ptrdiff_t>(first), l->items.end()};
  }
  Values out;
  if (const std::string* whole = value.text()) {
    const Characters characters(*whole);
    charge(static_cast<std::int64_t>(characters.size() * (sizeof(Value) + 48)));
    for (size_t i = 0; i < characters.size(); ++i) out.emplace_back(std::string(characters[i]));
    return out;
  }
  if (const Dict* d = value.dict()) {
    for (const auto& [key, ignored] : d->items) out.push_back(key);
    return out;
  }
  fail("the value cannot be iterated", what_of(value), "a list, dict or string");
}

std::int64_t Interpreter::length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.text()) return static_cast<std::int64_t>(Characters(*value.text()).size());
  if (value.list() && value.list()->kind != ListKind::generator)
    return static_cast<std::int64_t>(value.list()->items.size());
  if (value.dict()) return static_cast<std::int64_t>(value.dict()->items.size());
  if (value.loop()) return static_cast<std::int64_t>(value.loop()->items->size());
  fail("the value has no length", what_of(value), "a list, dict or string");
}

// Calls.

std::vector<const Value*> Interpreter::bound(const std::string& function_name, const Arguments& arguments,
                                             const std::vector<std::string>& parameters) const {
  std::vector<const Value*> out(parameters.size(), nullptr);
  if (arguments.positional.size() > parameters.size())
    fail("there are too many arguments", function_name, "at most " + std::to_string(parameters.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) out[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto p = std::find(parameters.begin(), parameters.end(), name);
    if (p == parameters.end()) fail("there is no such argument", function_name + "(" + name + "=...)");
    out[static_cast<size_t>(p - parameters.begin())] = &value;
  }
  return out;
}

std::int64_t Interpreter::integer(const Value& value, const std::string& what) const {
  const auto i = value.as_integer();
  if (!i) fail(what + " is not a whole number", what_of(value));
  return *i;
}

const std::string& Interpreter::string(const Value& value, const std::string& what) const {
  if (!value.text()) fail(what + " is not a string", what_of(value));
  return *value.text();
}

Value Interpreter::call(const Value& target, const Arguments& arguments) {
  const Depth depth(*this);
  if (const Loop* loop = target.loop(); loop && loop->recursive) {
    const auto given = bound("loop", arguments, {"iterable"});
    if (!given[0]) fail("loop() needs a list");
    const Statement& s = *loop->recursive;
    const int level = loop->level + 1;
    std::string out;
    std::string* const before = std::exchange(out_, &out);
    const bool was_captured = std::exchange(is_captured_, true);
    run_loop(s, *given[0], level);
    is_captured_ = was_captured;
    out_ = before;
    return text(std::move(out));
  }
  const Callable* callable = target.callable();
  if (!callable) fail("the value cannot be called", what_of(target), "a function or macro");
  if (callable->kind == Callable::Kind::macro) return call_macro(*callable, arguments);
  if (callable->kind == Callable::Kind::function) return call_function(callable->name, arguments);
  const Value& self = callable->self;
  const std::string& name = callable->name;
  if (self.text()) return call_text_method(*this, *self.text(), name, arguments);
  if (const Loop* loop = self.loop()) {
    if (arguments.positional.empty()) fail("loop.cycle() needs values");
    return arguments.positional[loop->index % arguments.positional.size()];
  }
  if (const List* l = self.list()) {
    const auto given = bound(name, arguments, {"value"});
    if (name == "copy") return list(l->items);
    if (!given[0]) fail("the method needs a value", "." + name + "()");
    const auto is_same = [&](const Value& one) { return same(one, *given[0]); };
    if (name == "count") return Value(std::int64_t{std::count_if(l->items.begin(), l->items.end(), is_same)});
    const auto at = std::find_if(l->items.begin(), l->items.end(), is_same);
    if (at == l->items.end()) fail("the value is not in the list", repr(*given[0]));
    return Value(std::int64_t{at - l->items.begin()});
  }
  const Dict& d = *self.dict();
  if (name == "get") {
    const auto given = bound(name, arguments, {"key", "default"});
    if (!given[0]) fail("get() needs a key");
    const Value* value = d.find(*given[0]);
    return value ? *value : given[1] ? *given[1] : Value(None{});
  }
  bound(name, arguments, {});
  if (name == "copy") return self;
  Values items;
  for (const auto& [key, value] : d.items)
    items.push_back(name == "keys" ? key : name == "values" ? value : list({key, value}, ListKind::tuple));
  return list(std::move(items), ListKind::view);
}

Value Interpreter::call_function(const std::string& name, const Arguments& arguments) {
  if (name == "raise_exception") {
    const auto given = bound(name, arguments, {"message"});
    throw Error(
        {.id = "TOK-2",
         .message = "the chat template refuses the messages: " + excerpt(given[0] ? to_str(*given[0]) : "", 400),
         .file = source_,
         .place = "line " + std::to_string(at_.line) + ", column " + std::to_string(at_.column),
         .fix = "change the messages as the template asks, or choose another template in data.chat"});
  }
  if (name == "strftime_now") {
    const auto given = bound(name, arguments, {"format"});
    if (!given[0]) fail("strftime_now() needs a format");
    return text(formatted_time(string(*given[0], "the format"), now_));
  }
  if (name == "range") {
    const auto given = bound(name, arguments, {"start", "stop", "step"});
    if (!given[0]) fail("range() needs a number");
    const std::int64_t first = given[1] ? integer(*given[0], "the start") : 0;
    const std::int64_t last = integer(given[1] ? *given[1] : *given[0], "the end of a range");
    const std::int64_t step = given[2] ? integer(*given[2], "the step") : 1;
    if (step == 0) fail("the step of a range is 0");
    Values items;
    for (std::int64_t i = first; step > 0 ? i < last : i > last;) {
      items.emplace_back(i);
      if (items.size() > static_cast<size_t>(kLongestRange))
        fail("the range is too long", "", "at most " + std::to_string(kLongestRange) + " numbers, as in transformers");
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return list(std::move(items), ListKind::range);
  }
  std::vector<std::pair<Value, Value>> items;
  if (!arguments.positional.empty()) {
    if (arguments.positional.size() > 1 || !arguments.positional[0].dict())
      fail("the function takes one dict and named values", name);
    items = arguments.positional[0].dict()->items;
  }
  for (const auto& [key, value] : arguments.named) items.emplace_back(text(key), value);
  if (name == "dict") return dict(std::move(items));
  charge(static_cast<std::int64_t>(sizeof(Namespace) + items.size() * (sizeof(Value) + sizeof(std::string))));
  Namespace& names = namespaces_.emplace_back();
  for (auto& [key, value] : items) names.items.emplace_back(to_str(key), std::move(value));
  return Value(&names);
}

Value Interpreter::filter(const std::string& name, const Value& subject, const Arguments& arguments) {
  const Depth depth(*this);
  if (!has_filter(name)) fail("the filter is unknown or not supported in chat templates", name);
  return apply_filter(*this, name, subject, arguments);
}

bool Interpreter::test(const std::string& name, const Value& subject, const Arguments& arguments) {
  const Depth depth(*this);
  if (!has_test(name)) fail("the test is unknown or not supported in chat templates", name);
  return apply_test(*this, name, subject, arguments);
}

}  // namespace mw::data::jinja
