// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/estimate.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"

namespace mw::plan {
namespace {

std::string inputs_of(const Estimate& estimate) {
  return estimate.inputs.empty() ? number_text(estimate.value) : estimate.inputs;
}

// The inputs of a sum or a difference, taken before the values change.
std::string joined(const Estimate& a, const char* sign, const Estimate& b) {
  constexpr size_t kLongest = 240;  // beyond, the values stand for how they were made
  if (a.inputs.empty() && b.inputs.empty()) return {};
  const bool sum = *sign == '+';
  std::string text = inputs_of(a) + " " + sign + " " + (sum ? inputs_of(b) : "(" + inputs_of(b) + ")");
  return text.size() <= kLongest ? text : number_text(a.value) + " " + sign + " " + number_text(b.value);
}

}  // namespace

Estimate operator+(Estimate a, const Estimate& b) {
  a += b;
  return a;
}

Estimate& operator+=(Estimate& a, const Estimate& b) {
  if (a.value == 0)
    a.inputs = b.inputs;
  else if (b.value != 0)
    a.inputs = joined(a, "+", b);
  a.value += b.value;
  a.low += b.low;
  a.high += b.high;
  a.origin = std::max(a.origin, b.origin);
  if (a.formula.empty()) a.formula = b.formula;
  if (a.source.empty()) a.source = b.source;
  return a;
}

Estimate operator-(Estimate a, const Estimate& b) {
  if (b.value != 0) a.inputs = joined(a, "-", b);
  a.value -= b.value;
  a.low -= b.low;
  a.high -= b.high;
  return a;
}

Estimate operator*(Estimate a, double factor) {
  if (!a.inputs.empty() && factor != 1) a.inputs = number_text(factor) + " x (" + a.inputs + ")";
  a.value *= factor;
  a.low *= factor;
  a.high *= factor;
  return a;
}

namespace {

std::string factor(const Expression& expression) {
  return expression.is_sum ? "(" + expression.text + ")" : expression.text;
}

}  // namespace

Expression count(double n) {
  constexpr double kShort = 999.5;  // from here count_text() gives three digits
  return {n, std::abs(n) < kShort && n != std::round(n) ? number_text(n) : count_text(n)};
}

Expression number(double v) {
  return {v, number_text(v)};
}

Expression bytes_each(double bytes) {
  return {bytes, number_text(bytes) + " B"};
}

Expression amount(double bytes) {
  constexpr double kWhole = 1024;  // below, parts of a byte count
  return {bytes, std::abs(bytes) < kWhole ? bytes_each(bytes).text : to_text(Bytes(std::llround(bytes)))};
}

Expression seconds_text(double seconds) {
  return {seconds, number_text(seconds) + " s"};
}

Expression operator*(const Expression& a, const Expression& b) {
  return {a.value * b.value, factor(a) + " x " + factor(b)};
}

Expression operator/(const Expression& a, const Expression& b) {
  const bool compound = b.is_sum || b.text.find(" x ") != std::string::npos;
  return {a.value / b.value, factor(a) + " / " + (compound ? "(" + b.text + ")" : b.text)};
}

Expression operator+(const Expression& a, const Expression& b) {
  if (a.value == 0) return b;
  if (b.value == 0) return a;
  return {a.value + b.value, a.text + " + " + b.text, true};
}

Expression operator-(const Expression& a, const Expression& b) {
  if (b.value == 0) return a;
  return {a.value - b.value, a.text + " - " + (b.is_sum ? "(" + b.text + ")" : b.text), true};
}

Expression labelled(Expression e, const std::string& what) {
  e.text = factor(e) + " [" + what + "]";
  e.is_sum = false;
  return e;
}

}  // namespace mw::plan
