// SPDX-License-Identifier: GPL-3.0-or-later
// Colours as people without red or green cones see them, and how far apart they are.
#pragma once
#include <QColor>
#include <algorithm>
#include <array>
#include <cmath>

namespace mw::test {

enum class ColorVision { normal, protanopia, deuteranopia };

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

inline Triple product(const Matrix& m, const Triple& v) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return out;
}

// CIE L*a*b* of the colour in this vision: Machado, Oliveira and Fernandes (2009), severity 1, in linear sRGB.
inline Triple lab(const QColor& color, ColorVision vision) {
  static constexpr Matrix kNormal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  static constexpr Matrix kProtanopia{
      {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
  static constexpr Matrix kDeuteranopia{
      {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
  static constexpr Matrix kXyz{
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  static constexpr Triple kWhite{0.95047, 1, 1.08883};
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  const auto curve = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  Triple rgb{linear(color.redF()), linear(color.greenF()), linear(color.blueF())};
  rgb = product(vision == ColorVision::normal       ? kNormal
                : vision == ColorVision::protanopia ? kProtanopia
                                                    : kDeuteranopia,
                rgb);
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  Triple xyz = product(kXyz, rgb);
  for (size_t i = 0; i < 3; ++i) xyz[i] = curve(xyz[i] / kWhite[i]);
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

// The colour difference of CIE 1976; 2.3 is just noticeable side by side.
inline double difference(const QColor& a, const QColor& b, ColorVision vision) {
  const Triple x = lab(a, vision), y = lab(b, vision);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

}  // namespace mw::test
