// SPDX-License-Identifier: Apache-2.0
#include "core/plan/estimate.h"

#include <algorithm>

namespace mw::plan {

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::measured:
      return "measured";
    case Origin::interpolated:
      return "interpolated";
    case Origin::transferred:
      return "transferred";
    case Origin::floor:
      return "floor";
  }
  return "";
}

Estimate operator+(Estimate a, const Estimate& b) {
  a += b;
  return a;
}

Estimate& operator+=(Estimate& a, const Estimate& b) {
  a.value += b.value;
  a.low += b.low;
  a.high += b.high;
  a.origin = std::max(a.origin, b.origin);
  if (a.formula.empty()) a.formula = b.formula;
  if (a.inputs.empty()) a.inputs = b.inputs;
  if (a.source.empty()) a.source = b.source;
  return a;
}

Estimate operator*(Estimate a, double factor) {
  a.value *= factor;
  a.low *= factor;
  a.high *= factor;
  return a;
}

}  // namespace mw::plan
