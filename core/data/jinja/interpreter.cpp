// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/interpreter.h"

#include <algorithm>
#include <array>

#include "core/base/counted.h"
#include "core/base/text.h"

namespace mw::data::jinja {
namespace {

constexpr std::array<std::string_view, 5> kFunctions{"range", "namespace", "dict", "raise_exception", "strftime_now"};

}  // namespace

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

void Interpreter::enter() {
  const auto refuse = [&](const std::string& message, const std::string& found) {
    --depth_;  // no Depth lives
    fail(message, found);
  };
  if (++depth_ > limits_.depth)
    refuse("calls and expressions are nested too deeply", "more than " + std::to_string(limits_.depth) + " levels");
  if (++steps_ > limits_.steps) refuse("the template takes too long", "more than " + counted(limits_.steps, "step"));
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

Interpreter::LoopControl Interpreter::run_statement(const TemplateStatement& s) {
  const Depth depth(*this);
  at_ = s.at;
  switch (s.kind) {
    case TemplateStatement::Kind::text:
      write(s.text);
      break;
    case TemplateStatement::Kind::output: {
      Value result;
      const Value& value = operand(*s.expressions.front(), result);
      if (value.text())
        write(*value.text());
      else
        write(str(value));
      break;
    }
    case TemplateStatement::Kind::if_:
      return run_if(s);
    case TemplateStatement::Kind::for_:
      run_for(s);
      break;
    case TemplateStatement::Kind::set:
    case TemplateStatement::Kind::set_block:
    case TemplateStatement::Kind::filter_block:
      run_set(s);
      break;
    case TemplateStatement::Kind::macro:
      assign(s.macro.name, make_macro(s.macro));
      break;
    case TemplateStatement::Kind::call_block:
      run_call_block(s);
      break;
    case TemplateStatement::Kind::with: {
      Variables scope;
      for (size_t i = 0; i < s.targets.size(); ++i)
        scope.emplace_back(s.targets[i].names.front(), eval(*s.expressions[i]));
      scopes_.push_back(std::move(scope));
      const LoopControl control = run_body(s.bodies.front());
      scopes_.pop_back();
      return control;
    }
    case TemplateStatement::Kind::generation: {
      const size_t begin = out_->size();
      scopes_.emplace_back();
      const LoopControl control = run_body(s.bodies.front());
      scopes_.pop_back();
      if (!is_captured_) generated_.push_back({begin, out_->size()});
      return control;
    }
    case TemplateStatement::Kind::break_:
      return LoopControl::break_;
    case TemplateStatement::Kind::continue_:
      return LoopControl::continue_;
  }
  return LoopControl::next;
}

Interpreter::LoopControl Interpreter::run_if(const TemplateStatement& s) {
  for (size_t i = 0; i < s.expressions.size(); ++i)
    if (is_true(eval(*s.expressions[i]))) return run_body(s.bodies[i]);
  return s.bodies.size() > s.expressions.size() ? run_body(s.bodies.back()) : LoopControl::next;
}

void Interpreter::run_for(const TemplateStatement& s) {
  run_loop(s, eval(*s.expressions.front()), 0);
}

void Interpreter::run_loop(const TemplateStatement& s, const Value& iterable, int level) {
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

void Interpreter::run_set(const TemplateStatement& s) {
  Value value;
  if (s.kind == TemplateStatement::Kind::set) {
    value = eval(*s.expressions.front());
  } else {
    value = text(captured(s.bodies.front()));
    if (!s.expressions.empty()) {
      scopes_.push_back({{"(block)", value}});
      value = eval(*s.expressions.front());
      scopes_.pop_back();
    }
    if (s.kind == TemplateStatement::Kind::filter_block) return write(str(value));
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

void Interpreter::run_call_block(const TemplateStatement& s) {
  const TemplateExpression& called = *s.expressions.front();
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
  if (std::find(kFunctions.begin(), kFunctions.end(), name) != kFunctions.end())
    return make_function(Callable::Kind::function, name);
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

void Interpreter::unpack(const AssignmentTarget& target, const Value& value) {
  if (!target.is_tuple) return assign(target.names.front(), value);
  const Values items = items_of(value);
  if (items.size() != target.names.size())
    fail("the number of values to unpack is wrong", std::to_string(items.size()), std::to_string(target.names.size()));
  for (size_t i = 0; i < items.size(); ++i) assign(target.names[i], items[i]);
}

}  // namespace mw::data::jinja
