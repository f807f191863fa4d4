// SPDX-License-Identifier: Apache-2.0
// An expression with its value, both built from the same numbers, so that the arithmetic shown to the user always gives
// the number beside it. Plain values; any thread.
#pragma once
#include <string>

#include "core/base/units.h"

namespace mw::plan {

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
