// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/expression.h"

#include <cmath>

namespace mw::plan {
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
