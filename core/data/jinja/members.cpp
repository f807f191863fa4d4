// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/interpreter.h"

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/data/jinja/characters.h"

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

}  // namespace mw::data::jinja
