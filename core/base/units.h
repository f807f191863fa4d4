// SPDX-License-Identifier: Apache-2.0
// Strong types for quantities, and how they are written in text. Thread-safe.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace mw {

template <class Tag, class Rep>
struct Quantity {
  Rep value{};
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  template <class S>
  friend constexpr Quantity operator*(Quantity a, S s) {
    return Quantity(static_cast<Rep>(a.value * s));
  }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Seconds = Quantity<struct SecondsTag, double>;
using Usd = Quantity<struct UsdTag, double>;

std::string to_text(Bytes bytes);           // "512 B", "27.1 GiB" (binary prefixes, three significant digits)
std::string to_text(Seconds seconds);       // "350 ms", "9.8 s", "1:42", "3:05:10"
std::string to_text(Usd usd);               // "$56.90"
std::string count_text(double n);           // "999", "12.3k", "4.63B"
std::string tenths_text(double share);      // "81.3 %"
std::optional<double> known(double value);  // none: not finite
std::string number_text(double v, int significant = 4);  // "0.0003210", "1234"

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mw
