// SPDX-License-Identifier: Apache-2.0
// The charts of a report, as HTML and SVG. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/formats/results/bench_result.h"
#include "core/views/series.h"

namespace mw::report {

// Metrics over steps and memory of training runs; latency and throughput by load of sweeps. `names`: by run.
std::string report_charts(const std::vector<compare::ComparedRun>& runs, const std::vector<std::string>& names);

// A line chart as an SVG element for a document of html.h, whose style has the colours of both themes. Predicted lines
// are dashed, imported ones dotted.
struct SvgLine {
  std::string name;
  std::vector<views::Point> points;  // in order of connection; a gap is NaN in y
  formats::ResultProvenance provenance = formats::ResultProvenance::measured;
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
