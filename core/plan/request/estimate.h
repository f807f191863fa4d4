// SPDX-License-Identifier: Apache-2.0
// A predicted number with its interval, its derivation and its source. Plain values; any thread.
#pragma once
#include <string>

#include "core/base/enum_names.h"
#include "core/base/units.h"

namespace mw::plan {

// The evidence for a value, best first. A sum has the worst origin of its parts.
enum class Origin {
  measured,      // on this chip and stack
  interpolated,  // between measured points of this chip
  transferred,   // measured on another chip, stack or model
  floor          // arithmetic only: a lower bound
};

struct Estimate {
  double value = 0;
  double low = 0, high = 0;  // equal to value if no range is known
  Origin origin = Origin::floor;
  std::string formula{};  // "layers x 2 P T / (peak x efficiency)"
  std::string inputs{};   // arithmetic that gives the value: "61.2 TFLOP / (459 TFLOP/s x 0.9)"; empty: not shown
  std::string source{};   // the source of the constants
};

// Values and limits are added, because errors with a common cause do not cancel out. `inputs` becomes the arithmetic of
// the result; formula and source are taken from the left operand.
Estimate operator+(Estimate a, const Estimate& b);
Estimate& operator+=(Estimate& a, const Estimate& b);
Estimate operator-(Estimate a, const Estimate& b);  // subtracts the limits, too
Estimate operator*(Estimate a, double factor);

// An expression with its value, both built from the same numbers, so that the arithmetic shown to the user always gives
// the number beside it. Plain values; any thread.
struct Expression {
  double value = 0;
  std::string text{};   // "512 x 1.60M x 4 B"; empty: nothing, with the value 0
  bool is_sum = false;  // in parentheses within a product
};

Expression count(double n);               // "1.60M", "3", "12.5"
Expression number(double v);              // four digits
Expression bytes_each(double bytes);      // "4 B"
Expression amount(double bytes);          // "60.9 MiB"
Expression seconds_text(double seconds);  // "0.01234 s"

// Terms with the value 0 are left out of a sum.
Expression operator*(const Expression& a, const Expression& b);
Expression operator/(const Expression& a, const Expression& b);
Expression operator+(const Expression& a, const Expression& b);
Expression operator-(const Expression& a, const Expression& b);
Expression labelled(Expression e, const std::string& what);  // "0.01234 s [launches]"

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::plan::Origin>{"measured", "interpolated", "transferred", "floor"};
