// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/estimate.h"

#include <algorithm>

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

}  // namespace mw::plan
