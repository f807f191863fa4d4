// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/interpreter.h"

#include <algorithm>
#include <cmath>

namespace mw::data::jinja {

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

}  // namespace mw::data::jinja
