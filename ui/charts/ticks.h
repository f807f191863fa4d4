// SPDX-License-Identifier: GPL-3.0-or-later
// Positions and texts of axis ticks. Plain values.
#pragma once
#include <QString>
#include <vector>

namespace mw::ui {

enum class AxisQuantity { plain, count, bytes, seconds, percent };  // determines tick steps and texts
enum class Scale { linear, logarithmic };

struct AxisRange {
  double low = 0, high = 1;
  double size() const { return high - low; }
  bool operator==(const AxisRange&) const = default;
};

struct Tick {
  double value;
  QString label;
};

// About `wanted` round ticks inside the span. Bytes step by powers of two, seconds by 1, 2, 5, 15, 30 of their unit.
std::vector<Tick> ticks(AxisRange span, int wanted, AxisQuantity quantity, Scale scale);
// One value as shown in readouts: "1.34", "12.4 MiB", "1:42", "2.00e-04".
QString value_text(double value, AxisQuantity quantity);
// Widens `span` by a margin. Never empty, and never below zero unless the data is.
AxisRange padded(AxisRange span, Scale scale);

}  // namespace mw::ui
