// SPDX-License-Identifier: Apache-2.0
// The values of Jinja expressions, with the semantics of Python: truth, equality, order, str(), repr() and
// json.dumps(). Lists, dicts and strings are immutable, as in the sandbox of transformers, so values form no cycles.
// The nesting of containers is limited by depth_of(), so that recursion over values is bounded. Not thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/json.h"

namespace mw::data::jinja {

inline constexpr int kMostNestedValues = 200;

class Value;
struct List;
struct Dict;
struct Callable;
struct Loop;
struct Namespace;

struct Undefined {
  std::shared_ptr<const std::string> what;  // e.g. "'tools' is undefined"
};
struct None {};

// As Python has them: a generator can be iterated once, is always true and has no length; a view (dict.items()) has no
// index; a range prints as range(0, 3).
enum class ListKind : std::uint8_t { list, tuple, view, range, generator };

class Value {
 public:
  Value() = default;  // undefined
  explicit Value(Undefined u) : data_(std::move(u)) {}
  Value(None n) : data_(n) {}
  explicit Value(bool b) : data_(b) {}
  explicit Value(std::int64_t i) : data_(i) {}
  explicit Value(double d) : data_(d) {}
  explicit Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  explicit Value(std::shared_ptr<const List> list) : data_(std::move(list)) {}
  explicit Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  explicit Value(std::shared_ptr<const Callable> callable) : data_(std::move(callable)) {}
  explicit Value(std::shared_ptr<const Loop> loop) : data_(std::move(loop)) {}
  explicit Value(Namespace* names) : data_(names) {}
  template <class T>
  Value(const T*) = delete;  // would convert to bool

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const double* real() const { return std::get_if<double>(&data_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data_); }
  const std::string* text() const;
  const List* list() const;
  const Dict* dict() const;
  const Callable* callable() const;
  const Loop* loop() const;
  Namespace* names() const;
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  bool is_number() const { return boolean() || integer() || real(); }
  std::optional<std::int64_t> as_integer() const;  // of an int or bool
  double as_real() const;                          // of a number

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<const Callable>,
               std::shared_ptr<const Loop>, Namespace*>
      data_;
};

using Values = std::vector<Value>;
struct List {
  Values items;
  ListKind kind = ListKind::list;
  int depth = 1;
  std::int64_t weight = 1;
  mutable size_t used = 0;  // items that a generator has given
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion
  int depth = 1;
  std::int64_t weight = 1;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};
// namespace(); owned by the render, because it is mutable and could refer to itself.
struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
};

// 0 for a scalar, else one more than the deepest item. Containers beyond kMostNestedValues must not be made.
int depth_of(const Value& value);
// Values and bytes of text that are visited when the value is written, at most 10^15: items count wherever they occur,
// because one list in another one twice, and so on, is written in exponential time.
std::int64_t weight_of(const Value& value);
Value make_list(Values items, ListKind kind = ListKind::list);
Value make_dict(std::vector<std::pair<Value, Value>> items);
Value from_json(const Json& json);

Value undefined(std::string what);

std::string type_name(const Value& value);  // "str", "list", ...: of Python
std::string what_of(const Value& value);    // for messages: the type, or what is undefined
bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);
std::optional<int> compare(const Value& a, const Value& b);  // <0, 0, >0; none: no order is defined
std::string to_str(const Value& value);
std::string repr(const Value& value);
std::string real_repr(double value);

struct DumpOptions {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent{};
  std::string item_separator = ", ", key_separator = ": ";
};
// As json.dumps(); none if a value has no JSON form, whose type is written to `refused`.
std::optional<std::string> dump_json(const Value& value, const DumpOptions& options, std::string& refused);

}  // namespace mw::data::jinja
