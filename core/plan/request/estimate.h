// SPDX-License-Identifier: Apache-2.0
// A predicted number with where it comes from and how far it may be off. Plain values; any thread.
#pragma once
#include <string>
#include <string_view>

namespace mw::plan {

// What a value rests on, best first. Of a sum: the worst of its parts.
enum class Origin {
  measured,      // on this chip and stack
  interpolated,  // between measured points of this chip
  transferred,   // measured on another chip, stack or model
  floor          // arithmetic alone: nothing real is faster or smaller
};
std::string_view to_string(Origin origin);

struct Estimate {
  double value = 0;
  double low = 0, high = 0;  // both equal to value where no range is known
  Origin origin = Origin::floor;
  std::string formula{};  // "layers x 2 P T / (peak x efficiency)"
  std::string inputs{};   // arithmetic that gives the value: "61.2 TFLOP / (459 TFLOP/s x 0.9)"; empty: not shown
  std::string source{};   // where the constants are from
};

// Values and limits add up (errors of one cause do not cancel out). Inputs stay arithmetic that gives the value;
// formula and source of the left one stay.
Estimate operator+(Estimate a, const Estimate& b);
Estimate& operator+=(Estimate& a, const Estimate& b);
Estimate operator-(Estimate a, const Estimate& b);  // limits, too
Estimate operator*(Estimate a, double factor);

}  // namespace mw::plan
