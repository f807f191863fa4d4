// SPDX-License-Identifier: Apache-2.0
#include "core/base/units.h"

#include <cmath>

#include "core/base/text.h"

namespace mw {
namespace {

// Three significant digits: 1.23, 12.3, 123.
std::string three_digits(double v) {
  const double a = std::abs(v);
  return formatted(a < 9.995 ? "%.2f" : a < 99.95 ? "%.1f" : "%.0f", v);
}

}  // namespace

std::string to_text(Bytes bytes) {
  static constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double v = static_cast<double>(bytes.value);
  size_t unit = 0;
  while (std::abs(v) >= 1024 && unit + 1 < kUnits.size()) v /= 1024, ++unit;
  return unit == 0 ? formatted("%.0f B", v) : three_digits(v) + " " + kUnits[unit];
}

std::string to_text(Seconds seconds) {
  const double s = seconds.value;
  if (!std::isfinite(s)) return "unknown";
  if (s < 0) return "-" + to_text(Seconds(-s));
  if (s < 1e-3) return three_digits(s * 1e6) + " \u00b5s";
  if (s < 1) return three_digits(s * 1e3) + " ms";
  if (s < 60) return three_digits(s) + " s";
  const auto whole = static_cast<long long>(std::llround(s));
  if (whole < 3600) return formatted("%lld:%02lld", whole / 60, whole % 60);
  return formatted("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string to_text(Usd usd) {
  return formatted("$%.2f", usd.value);
}

std::string count_text(double n) {
  static constexpr std::array<const char*, 5> kUnits{"", "k", "M", "B", "T"};
  size_t unit = 0;
  while (std::abs(n) >= 999.5 && unit + 1 < kUnits.size()) n /= 1000, ++unit;
  return unit == 0 ? formatted("%.0f", n) : three_digits(n) + kUnits[unit];
}

std::string tenths_text(double share) {
  return formatted("%.1f %%", 100 * share);
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string number_text(double v, int significant) {
  if (!std::isfinite(v)) return std::isnan(v) ? "NaN" : v > 0 ? "inf" : "-inf";
  // 1500, not 1.5e+03: %g has an exponent from as many digits on as are significant.
  constexpr double kMostWithoutExponent = 1e15;
  std::string text = formatted("%.*g", significant, v);
  return std::abs(v) < kMostWithoutExponent && text.find("e+") != std::string::npos ? formatted("%.0f", std::stod(text))
                                                                                    : text;
}

}  // namespace mw
