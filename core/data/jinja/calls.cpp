// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/jinja/characters.h"
#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {
namespace {

constexpr std::array<std::string_view, 5> kDictMethods{"get", "items", "keys", "values", "copy"};
constexpr std::array<std::string_view, 13> kChanging{"append",  "extend", "insert",  "pop",    "remove",
                                                     "clear",   "sort",   "reverse", "update", "setdefault",
                                                     "popitem", "add",    "discard"};

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

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
    if (name == "cycle") return make_function(Callable::Kind::method, name, subject);
    fail("this attribute of loop is not supported", "loop." + name);
  }
  if (subject.text() && has_text_method(name)) return make_function(Callable::Kind::method, name, subject);
  if (subject.dict() && is_among(kDictMethods, name)) return make_function(Callable::Kind::method, name, subject);
  if (subject.list() && (name == "index" || name == "count" || name == "copy"))
    return make_function(Callable::Kind::method, name, subject);
  if ((subject.list() || subject.dict()) && is_among(kChanging, name) &&
      !(subject.dict() && subject.dict()->find(name)))
    fail("lists and dicts of a template cannot be changed, as in transformers", "." + name, "a new list, e.g. a + [b]");
  return item_named(subject, name);
}

Value Interpreter::item_named(const Value& subject, std::string_view key) {
  const auto quoted = [&] { return repr(Value(std::string(key))); };
  if (subject.is_undefined()) fail("an undefined value has no items", what_of(subject) + ", [" + quoted() + "]");
  if (const Dict* d = subject.dict()) {
    charge(static_cast<std::int64_t>(d->items.size()));
    if (const Value* value = d->find(key)) return *value;
  } else if (const Namespace* names = subject.names()) {
    for (const auto& [name, value] : names->items)
      if (name == key) return value;
  }
  return undefined("'" + type_name(subject) + "' has no item " + excerpt(quoted(), 60));
}

Value Interpreter::item(const Value& subject, const Value& key) {
  if (subject.is_undefined()) fail("an undefined value has no items", what_of(subject) + ", [" + repr(key) + "]");
  const auto missing = [&] { return undefined("'" + type_name(subject) + "' has no item " + excerpt(repr(key), 60)); };
  if (key.text()) return item_named(subject, *key.text());
  if (const Dict* d = subject.dict()) {
    charge(static_cast<std::int64_t>(d->items.size()));
    const Value* value = d->find(key);
    return value ? *value : missing();
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
                                [&key = name](const MacroParameter& x) { return x.name == key; });
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
    const MacroParameter& p = macro.parameters[i];
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
    const TemplateStatement& s = *loop->recursive;
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
    throw Error("TOK-2", "the chat template refuses the messages: " + excerpt(given[0] ? to_str(*given[0]) : "", 400),
                {.file = source_,
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
