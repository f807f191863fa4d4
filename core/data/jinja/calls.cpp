// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/interpreter.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace mw::data::jinja {
namespace {

constexpr std::int64_t kLongestRange = 100'000;  // of Jinja's sandbox

std::string formatted_time(const std::string& format, std::time_t now) {
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 1024> out{};
  return {out.data(), std::strftime(out.data(), out.size(), format.c_str(), &local)};
}

}  // namespace

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
