// SPDX-License-Identifier: Apache-2.0
// A line chart as an SVG element for an HTML document of html.h, whose style has the colours of both themes. Predicted
// lines are dashed, imported ones dotted. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/views/series.h"

namespace mw::report {

struct SvgLine {
  std::string name;
  std::vector<views::Point> points;  // in order of connection; a gap is NaN in y
  formats::Provenance provenance = formats::Provenance::measured;
  size_t color = 0;  // lines of one run have one colour
};
struct AxisTick {
  double place = 0;
  std::string label;
};
struct SvgChart {
  std::string title, x_title, y_title;
  std::vector<SvgLine> lines;
  std::vector<AxisTick> x_ticks{};                   // empty: round numbers
  enum class Base { data, zero } base = Base::data;  // where the y axis begins
  enum class Marks { none, points } marks = Marks::none;
};

std::vector<AxisTick> round_ticks(double low, double high, int wanted);  // 1, 2 or 5 times a power of ten apart
std::string svg_chart(const SvgChart& chart);  // a <figure>; empty if no line has a finite point

}  // namespace mw::report
