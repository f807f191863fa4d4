// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/ticks.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

// Numbers outside of these limits are written with a power of ten.
constexpr double kSmall = 0.01, kLarge = 1e6;
constexpr double kFlat = 1e-12;  // relative span that counts as rounding

double round_step(double raw) {
  const double decade = std::pow(10.0, std::floor(std::log10(raw)));
  const double m = raw / decade;  // picks the nearest of 1, 2, 5, 10 on a log scale
  return decade * (m < 1.42 ? 1 : m < 3.17 ? 2 : m < 7.08 ? 5 : 10);
}

double step_for(double raw, AxisQuantity quantity) {
  if (quantity == AxisQuantity::bytes) return std::exp2(std::round(std::log2(std::max(raw, 1.0))));
  if (quantity == AxisQuantity::count) return std::max(1.0, round_step(raw));
  if (quantity == AxisQuantity::seconds && raw > 1)
    for (const double s : {2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
                           14400.0, 28800.0, 86400.0})
      if (raw <= s) return s;
  return round_step(raw);
}

// "5e-4": without padding the exponent.
QString exponent_text(double v, int digits) {
  QString s = QString::number(v, 'e', digits);
  s.replace(u"e-0"_s, u"e-"_s).replace(u"e+0"_s, u"e"_s).replace(u"e+"_s, u"e"_s);
  return s;
}

int decimals_of(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
}

int exponent_of(double v) {
  return static_cast<int>(std::floor(std::log10(v) + 1e-9));
}

// Writes all ticks of an axis in one notation: decimals, or multiples of the power of ten of the largest one, as in
// "0.5e-4, 1.0e-4, 1.5e-4".
QString plain_text(double v, double step, double largest) {
  if (v == 0) return u"0"_s;
  if (largest >= kSmall && largest < kLarge) return QString::number(v, 'f', std::min(decimals_of(step), 6));
  const int exponent = exponent_of(largest);
  const double unit = std::pow(10.0, exponent);
  return QString::number(v / unit, 'f', std::min(decimals_of(step / unit), 4)) + u'e' + QString::number(exponent);
}

QString bytes_text(double v, double step, double largest) {
  static constexpr const char16_t* kUnits[]{u" B", u" KiB", u" MiB", u" GiB", u" TiB"};
  double unit = 1;
  size_t name = 0;
  while (largest / unit >= 1024 && name + 1 < std::size(kUnits)) unit *= 1024, ++name;
  if (v == 0) return u"0"_s;
  const double shown_step = step / unit;
  const int decimals = shown_step >= 1 ? 0 : shown_step >= 0.5 ? 1 : shown_step >= 0.25 ? 2 : 3;
  return QString::number(v / unit, 'f', decimals) + QString::fromUtf16(kUnits[name]);
}

QString tick_text(double v, double step, double largest, AxisQuantity quantity) {
  switch (quantity) {
    case AxisQuantity::bytes:
      return bytes_text(v, step, largest);
    case AxisQuantity::seconds:
      if (v == 0) return u"0 s"_s;
      if (largest < 1) return QString::number(v * 1e3, 'f', decimals_of(step * 1e3)) + u" ms"_s;
      if (largest < 60) return QString::number(v, 'f', decimals_of(step)) + u" s"_s;
      return qs(to_text(Seconds(v)));
    case AxisQuantity::count:
      return std::abs(v) >= 10000 ? qs(count_text(v)) : QString::number(std::llround(v));
    case AxisQuantity::percent:
      return QString::number(v, 'f', std::min(decimals_of(step), 6)) + u" %"_s;
    case AxisQuantity::plain:
      return plain_text(v, step, largest);
  }
  return {};
}

std::vector<Tick> log_ticks(AxisRange span, int wanted, AxisQuantity quantity) {
  std::vector<Tick> out;
  const double low = std::log10(span.low), high = std::log10(span.high);
  if (high - low < 0.9) return ticks(span, wanted, quantity, Scale::linear);
  const int stride = std::max(1, static_cast<int>(std::ceil((high - low) / wanted)));
  const bool fine = stride == 1 && (high - low) * 3 <= wanted;
  const bool powers = span.low < kSmall / 10 || span.high >= kLarge;  // for all ticks or none
  const auto text = [&](double v) {
    if (quantity != AxisQuantity::plain) return tick_text(v, v, v, quantity);
    return powers ? exponent_text(v, 0) : plain_text(v, v, 1);
  };
  for (int e = static_cast<int>(std::floor(low)); e <= static_cast<int>(std::ceil(high)); e += stride)
    for (const double m : {1.0, 2.0, 5.0}) {
      if (m > 1 && !fine) break;
      const double v = m * std::pow(10.0, e);
      if (v < span.low * 0.9999 || v > span.high * 1.0001) continue;
      out.push_back({v, text(v)});
    }
  return out;
}

}  // namespace

std::vector<Tick> ticks(AxisRange span, int wanted, AxisQuantity quantity, Scale scale) {
  std::vector<Tick> out;
  wanted = std::max(wanted, 1);
  if (!(span.size() > 0) || !std::isfinite(span.size())) return out;
  if (scale == Scale::logarithmic && span.low > 0) return log_ticks(span, wanted, quantity);
  const double step = step_for(span.size() / wanted, quantity);
  const double largest = std::max(std::abs(span.low), std::abs(span.high));
  if (span.size() < kFlat * largest) return out;  // steps would be lost to rounding
  for (double i = std::ceil(span.low / step - 1e-9); i * step <= span.high + step * 1e-9; ++i)
    out.push_back({i * step, tick_text(i * step, step, largest, quantity)});
  return out;
}

QString value_text(double v, AxisQuantity quantity) {
  if (std::isnan(v)) return u"\u2013"_s;  // a gap
  if (!std::isfinite(v)) return qs(number_text(v));
  switch (quantity) {
    case AxisQuantity::bytes:
      return qs(to_text(Bytes(std::llround(v))));
    case AxisQuantity::seconds:
      return qs(to_text(Seconds(v)));
    case AxisQuantity::count:
      return QString::number(std::llround(v));
    case AxisQuantity::percent:
      return QString::number(v, 'f', v > 0 && v < 0.95 ? 1 : 0) + u" %"_s;
    case AxisQuantity::plain:
      break;
  }
  const double a = std::abs(v);
  if (v == 0) return u"0"_s;
  if (a < kSmall || a >= kLarge) return exponent_text(v, 2);
  return QString::number(v, 'f', a >= 1000 ? 0 : a >= 100 ? 1 : a >= 10 ? 2 : a >= 1 ? 3 : 4);
}

AxisRange padded(AxisRange s, Scale scale) {
  if (!(s.low <= s.high)) return {0, 1};
  if (scale == Scale::logarithmic && s.low > 0) {
    const double grow = std::max(1.05, std::pow(s.high / s.low, 0.05));
    return {s.low / grow, s.high * grow};
  }
  const double largest = std::max(std::abs(s.low), std::abs(s.high));
  const double air = s.size() > kFlat * largest ? s.size() * 0.06 : std::max(largest * 0.1, 1e-9);
  const bool from_zero = s.low >= 0;
  const double low = s.low - air;
  return {from_zero ? std::max(0.0, low) : low, s.high + air};
}

}  // namespace mw::ui
