// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {
namespace {

constexpr std::int64_t kMostWeight = 1'000'000'000'000'000;

template <class T, class Data>
const T* shared_in(const Data& data) {
  const auto* p = std::get_if<std::shared_ptr<const T>>(&data);
  return p ? p->get() : nullptr;
}

bool equal_items(const Values& a, const Values& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

std::string escaped(const char* format, std::uint32_t value) {
  std::array<char, 16> out{};
  std::snprintf(out.data(), out.size(), format, value);
  return out.data();
}

std::string repr_of_text(const std::string& text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t n = std::max<size_t>(character_length(std::string_view(text).substr(i)), 1);
    const std::uint32_t c = code_point(std::string_view(text).substr(i, n));
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == static_cast<unsigned char>(quote))
      out += {'\\', static_cast<char>(c)};
    else if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad)
      out += escaped("\\x%02x", c);
    else if ((c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) || c == 0x3000 || c == 0xfeff)
      out += escaped("\\u%04x", c);
    else
      out += text.substr(i, n);
    i += n;
  }
  return out + quote;
}

std::string in_brackets(const List& list) {
  const bool tuple = list.kind == ListKind::tuple;
  std::string out(1, tuple ? '(' : '[');
  for (size_t i = 0; i < list.items.size(); ++i) out += (i ? ", " : "") + repr(list.items[i]);
  if (tuple && list.items.size() == 1) out += ",";
  return out + (tuple ? ')' : ']');
}

std::string str_of_list(const List& list) {
  switch (list.kind) {
    case ListKind::generator:
      return "<generator object>";
    case ListKind::range:
      return "range(" + std::to_string(list.items.size()) + ")";
    case ListKind::view:
      return "dict_view(" + in_brackets(list) + ")";
    case ListKind::list:
    case ListKind::tuple:
      break;
  }
  return in_brackets(list);
}

class Dumper {
 public:
  Dumper(const DumpOptions& options, std::string& refused) : options_(options), refused_(refused) {}

  bool add(const Value& value, int level) {
    if (value.is_none()) return put("null");
    if (value.boolean()) return put(*value.boolean() ? "true" : "false");
    if (value.integer()) return put(std::to_string(*value.integer()));
    if (value.real()) return put(number(*value.real()));
    if (value.text()) return quote(*value.text());
    if (const List* list = value.list(); list && (list->kind == ListKind::list || list->kind == ListKind::tuple))
      return add_list(*list, level);
    if (value.dict()) return add_dict(*value.dict(), level);
    refused_ = type_name(value);
    return false;
  }
  std::string out;

 private:
  bool put(std::string_view text) {
    out += text;
    return true;
  }
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return real_repr(d);
  }
  bool quote(const std::string& text) {
    out += '"';
    for (size_t i = 0; i < text.size();) {
      const size_t n = std::max<size_t>(character_length(std::string_view(text).substr(i)), 1);
      add_character(std::string_view(text).substr(i, n));
      i += n;
    }
    out += '"';
    return true;
  }
  void add_character(std::string_view bytes) {
    const std::uint32_t c = code_point(bytes);
    constexpr std::string_view kShort = "\b\t\n\f\r\"\\", kLetters = "btnfr\"\\";
    if (const size_t at = c < 0x80 ? kShort.find(static_cast<char>(c)) : kShort.npos; at != kShort.npos) {
      out += {'\\', kLetters[at]};
    } else if (c < 0x20 || (options_.ensure_ascii && c >= 0x7f && c < 0x10000 && c != 0x7f)) {
      out += escaped("\\u%04x", c);
    } else if (options_.ensure_ascii && c >= 0x10000) {
      out += escaped("\\u%04x", 0xd800 + ((c - 0x10000) >> 10)) + escaped("\\u%04x", 0xdc00 + ((c - 0x10000) & 0x3ff));
    } else {
      out += bytes;
    }
  }
  void line(int level) {
    if (!options_.indent) return;
    out += '\n';
    for (int i = 0; i < level; ++i) out += *options_.indent;
  }
  bool add_list(const List& list, int level) {
    if (list.items.empty()) return put("[]");
    out += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i) out += options_.item_separator;
      line(level + 1);
      if (!add(list.items[i], level + 1)) return false;
    }
    line(level);
    return put("]");
  }
  bool add_key(const Value& key) {
    if (key.text()) return quote(*key.text());
    if (!key.is_none() && !key.is_number()) {
      refused_ = "a key of type " + type_name(key);
      return false;
    }
    out += '"';
    add(key, 0);
    return put("\"");
  }
  bool add_dict(const Dict& dict, int level) {
    if (dict.items.empty()) return put("{}");
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (options_.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto* a, const auto* b) { return compare(a->first, b->first).value_or(0) < 0; });
    out += '{';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += options_.item_separator;
      line(level + 1);
      if (!add_key(items[i]->first)) return false;
      out += options_.key_separator;
      if (!add(items[i]->second, level + 1)) return false;
    }
    line(level);
    return put("}");
  }

  const DumpOptions& options_;
  std::string& refused_;
};

}  // namespace

const std::string* Value::text() const {
  return shared_in<std::string>(data_);
}
const List* Value::list() const {
  return shared_in<List>(data_);
}
const Dict* Value::dict() const {
  return shared_in<Dict>(data_);
}
const Callable* Value::callable() const {
  return shared_in<Callable>(data_);
}
const Loop* Value::loop() const {
  return shared_in<Loop>(data_);
}
Namespace* Value::names() const {
  const auto* p = std::get_if<Namespace*>(&data_);
  return p ? *p : nullptr;
}
std::optional<std::int64_t> Value::as_integer() const {
  if (boolean()) return *boolean() ? 1 : 0;
  return integer() ? std::optional(*integer()) : std::nullopt;
}
double Value::as_real() const {
  return real() ? *real() : static_cast<double>(as_integer().value_or(0));
}

const Value* Dict::find(const Value& key) const {
  for (const auto& [k, v] : items)
    if (equal(k, key)) return &v;
  return nullptr;
}
const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : items)
    if (k.text() && *k.text() == key) return &v;
  return nullptr;
}

int depth_of(const Value& value) {
  if (value.list()) return value.list()->depth;
  if (value.dict()) return value.dict()->depth;
  if (value.callable()) return value.callable()->depth;
  if (value.loop()) return value.loop()->depth;
  return 0;
}

std::int64_t weight_of(const Value& value) {
  if (value.text()) return static_cast<std::int64_t>(value.text()->size()) + 1;
  if (value.list()) return value.list()->weight;
  return value.dict() ? value.dict()->weight : 1;
}

Value make_list(Values items, ListKind kind) {
  int depth = 0;
  std::int64_t weight = 1;
  for (const Value& item : items) {
    depth = std::max(depth, depth_of(item));
    weight = std::min(kMostWeight, weight + weight_of(item));
  }
  return Value(std::make_shared<const List>(List{std::move(items), kind, depth + 1, weight, 0}));
}

Value make_dict(std::vector<std::pair<Value, Value>> items) {
  int depth = 0;
  std::int64_t weight = 1;
  for (const auto& [key, value] : items) {
    depth = std::max({depth, depth_of(key), depth_of(value)});
    weight = std::min(kMostWeight, weight + weight_of(key) + weight_of(value));
  }
  return Value(std::make_shared<const Dict>(Dict{std::move(items), depth + 1, weight}));
}

Value from_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
    case Json::value_t::discarded:
      return None{};
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return Value(json.get<double>());
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
    case Json::value_t::binary:
      return Value(json.get<std::string>());
    case Json::value_t::array: {
      Values items;
      for (const Json& item : json) items.push_back(from_json(item));
      return make_list(std::move(items));
    }
    case Json::value_t::object:
      break;
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& member : json.items()) items.emplace_back(Value(member.key()), from_json(member.value()));
  return make_dict(std::move(items));
}

std::string type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.boolean()) return "bool";
  if (value.integer()) return "int";
  if (value.real()) return "float";
  if (value.text()) return "str";
  if (value.dict()) return "dict";
  if (value.callable()) return "function";
  if (value.loop()) return "LoopContext";
  if (value.names()) return "Namespace";
  constexpr std::array<const char*, 5> kLists{"list", "tuple", "dict_view", "range", "generator"};
  return kLists[static_cast<size_t>(value.list()->kind)];
}

std::string what_of(const Value& value) {
  if (const Undefined* u = value.undefined()) return u->what ? *u->what : "an undefined value";
  return type_name(value);
}

Value undefined(std::string what) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(what))});
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.boolean()) return *value.boolean();
  if (value.integer()) return *value.integer() != 0;
  if (value.real()) return *value.real() != 0;
  if (value.text()) return !value.text()->empty();
  if (value.list()) return value.list()->kind == ListKind::generator || !value.list()->items.empty();
  if (value.dict()) return !value.dict()->items.empty();
  return true;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.real() || b.real()) return a.as_real() == b.as_real();
    return a.as_integer() == b.as_integer();
  }
  if (a.text() && b.text()) return *a.text() == *b.text();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.list() && b.list()) {
    if (a.list()->kind == ListKind::generator || b.list()->kind == ListKind::generator) return a.list() == b.list();
    return a.list()->kind == b.list()->kind && equal_items(a.list()->items, b.list()->items);
  }
  if (a.dict() && b.dict()) {
    const Dict &x = *a.dict(), &y = *b.dict();
    return x.items.size() == y.items.size() && std::all_of(x.items.begin(), x.items.end(), [&](const auto& item) {
             const Value* other = y.find(item.first);
             return other && equal(item.second, *other);
           });
  }
  if (a.callable() || b.callable()) return a.callable() == b.callable();
  if (a.loop() || b.loop()) return a.loop() == b.loop();
  return a.names() && a.names() == b.names();
}

std::optional<int> compare(const Value& a, const Value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_number() && b.is_number()) {
    if (a.real() || b.real()) return order(a.as_real(), b.as_real());
    return order(*a.as_integer(), *b.as_integer());
  }
  if (a.text() && b.text()) return order(*a.text(), *b.text());  // UTF-8 sorts as code points do
  if (!a.list() || !b.list() || a.list()->kind != b.list()->kind || a.list()->kind > ListKind::tuple)
    return std::nullopt;
  const Values &x = a.list()->items, &y = b.list()->items;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (!equal(x[i], y[i])) return compare(x[i], y[i]);
  return order(x.size(), y.size());
}

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const char* const end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string text(static_cast<const char*>(buffer.data()), end);
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return text;
  const bool negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  const auto whole = static_cast<size_t>(std::max(exponent + 1, 0));
  if (exponent < 0) digits.insert(0, static_cast<size_t>(-exponent - 1), '0');
  if (digits.size() < whole) digits.resize(whole, '0');
  std::string out = whole ? digits.substr(0, whole) : "0";
  out += '.';
  out += digits.size() > whole ? digits.substr(whole) : "0";
  return (negative ? "-" : "") + out;
}

std::string to_str(const Value& value) {
  if (value.text()) return *value.text();
  if (value.is_undefined()) return {};
  return repr(value);
}

std::string repr(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (value.boolean()) return *value.boolean() ? "True" : "False";
  if (value.integer()) return std::to_string(*value.integer());
  if (value.real()) return real_repr(*value.real());
  if (value.text()) return repr_of_text(*value.text());
  if (value.list()) return str_of_list(*value.list());
  if (!value.dict()) return "<" + type_name(value) + ">";
  std::string out = "{";
  for (const auto& [key, item] : value.dict()->items)
    out += (out.size() > 1 ? ", " : "") + repr(key) + ": " + repr(item);
  return out + "}";
}

std::optional<std::string> dump_json(const Value& value, const DumpOptions& options, std::string& refused) {
  Dumper dumper(options, refused);
  if (!dumper.add(value, 0)) return std::nullopt;
  return std::move(dumper.out);
}

}  // namespace mw::data::jinja
