// SPDX-License-Identifier: GPL-3.0-or-later
// Where an axis has its ticks and how they read. Plain values.
#pragma once
#include <QString>
#include <vector>

namespace mw::ui {

enum class Quantity { plain, count, bytes, seconds };  // decides tick steps and text
enum class Scale { linear, logarithmic };

struct Span {
  double low = 0, high = 1;
  double size() const { return high - low; }
  bool operator==(const Span&) const = default;
};

struct Tick {
  double value;
  QString label;
};

// About `wanted` round ticks inside the span. Bytes step by powers of two, seconds by 1, 2, 5, 15, 30 of their unit.
std::vector<Tick> ticks(Span span, int wanted, Quantity quantity, Scale scale);
// One value as a readout shows it: "1.34", "12.4 MiB", "1:42", "2.00e-04".
QString value_text(double value, Quantity quantity);
// `span` widened to leave air above and below; never empty, never below zero where the data is not.
Span padded(Span span, Scale scale);

}  // namespace mw::ui
