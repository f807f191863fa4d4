// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "core/data/jinja/characters.h"
#include "core/data/jinja/interpreter.h"

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

using Kind = TemplateExpression::Kind;

Value Interpreter::eval(const TemplateExpression& e) {
  const Depth depth(*this);
  at_ = e.at;
  Value out = eval_node(e);
  at_ = e.at;
  return out;
}

const Value& Interpreter::operand(const TemplateExpression& e, Value& result) {
  if (e.kind == Kind::constant) return e.constant;
  result = eval(e);
  return result;
}

Value Interpreter::eval_node(const TemplateExpression& e) {
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
      Value made_subject, made_key;
      const Value& subject = operand(*e.children[0], made_subject);
      const Value& key = operand(*e.children[1], made_key);
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
        Value result;
        const std::string part = str(operand(*c, result));
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

Value Interpreter::eval_dict(const TemplateExpression& e) {
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

Value Interpreter::eval_slice(const TemplateExpression& e) {
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

Value Interpreter::eval_compare(const TemplateExpression& e) {
  std::array<Value, 2> made;  // the result of the last operand stays while the next one is made
  const Value* left = &operand(*e.children.front(), made[0]);
  for (size_t i = 0; i < e.operators.size(); ++i) {
    const Value* const right = &operand(*e.children[i + 1], made[(i + 1) % 2]);
    at_ = e.at;
    if (!holds(e.operators[i], *left, *right)) return Value(false);
    left = right;
  }
  return Value(true);
}

bool Interpreter::holds(const std::string& op, const Value& left, const Value& right) {
  if (op == "==" || op == "!=") return same(left, right) == (op == "==");
  if (op == "in" || op == "not in") return contains(right, left) == (op == "in");
  if (op == "<") return is_less(left, right);
  if (op == ">") return is_less(right, left);
  return op == "<=" ? !is_less(right, left) : !is_less(left, right);
}

Value Interpreter::eval_binary(const TemplateExpression& e) {
  Value made_a, made_b;
  const Value& a = operand(*e.children[0], made_a);
  const Value& b = operand(*e.children[1], made_b);
  at_ = e.at;
  if (e.name == "+") return add(a, b);
  if (e.name == "*") return multiply(a, b);
  return arithmetic(e.name, a, b);
}

}  // namespace mw::data::jinja
