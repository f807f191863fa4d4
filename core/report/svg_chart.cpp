// SPDX-License-Identifier: Apache-2.0
#include "core/report/svg_chart.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/units.h"
#include "core/report/html.h"

namespace mw::report {
namespace {

constexpr double kWidth = 760, kLeft = 74, kRight = 16, kTop = 12, kPlotHeight = 230, kAxisHeight = 44, kRowHeight = 18;
constexpr size_t kColors = 8, kLegendColumns = 2;

struct Extent {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

Extent widened(Extent extent) {
  if (extent.high > extent.low) return extent;
  const double margin = extent.low == 0 ? 1 : std::abs(extent.low) * 0.1;
  return {extent.low - margin, extent.high + margin};
}

std::string pixel(double value) {  // two decimals, whatever the locale
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 2).ptr};
}

// Maps values to pixels of the plot.
struct Frame {
  Extent x, y;
  double left(double value) const { return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); }
  double top(double value) const { return kTop + (y.high - value) / (y.high - y.low) * kPlotHeight; }
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + pixel(x) + "\" y=\"" + pixel(y) + "\" text-anchor=\"" + anchor + "\">" + escape_html(text) +
         "</text>\n";
}

std::string stroke_class(const SvgLine& line) {
  const bool measured = line.provenance == formats::Provenance::measured;
  return "line c" + std::to_string(line.color % kColors) +
         (measured ? "" : " " + std::string(formats::to_string(line.provenance)));
}

std::string axes(const SvgChart& chart, const Frame& frame) {
  std::string out;
  for (const AxisTick& tick : round_ticks(frame.y.low, frame.y.high, 5)) {
    const std::string y = pixel(frame.top(tick.place));
    out += "<line class=\"grid\" x1=\"" + pixel(kLeft) + "\" x2=\"" + pixel(kWidth - kRight) + "\" y1=\"" + y +
           "\" y2=\"" + y + "\"/>\n" + text_at(kLeft - 6, frame.top(tick.place) + 4, "end", tick.label);
  }
  const std::vector<AxisTick> ticks = chart.x_ticks.empty() ? round_ticks(frame.x.low, frame.x.high, 7) : chart.x_ticks;
  for (const AxisTick& tick : ticks)
    if (tick.place >= frame.x.low && tick.place <= frame.x.high)
      out += text_at(frame.left(tick.place), kTop + kPlotHeight + 17, "middle", tick.label);
  out += text_at((kLeft + kWidth - kRight) / 2, kTop + kPlotHeight + 36, "middle", chart.x_title);
  return out + "<text transform=\"translate(14 " + pixel(kTop + kPlotHeight / 2) +
         ") rotate(-90)\" text-anchor=\"middle\">" + escape_html(chart.y_title) + "</text>\n";
}

// One polyline for each part without a gap.
std::string strokes(const SvgChart& chart, const SvgLine& line, const Frame& frame) {
  std::string out, points, circles;
  const auto end_part = [&] {
    if (!points.empty()) out += "<polyline class=\"" + stroke_class(line) + "\" points=\"" + points + "\"/>\n";
    points.clear();
  };
  for (const views::Point& p : line.points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) {
      end_part();
      continue;
    }
    const std::string x = pixel(frame.left(p.x)), y = pixel(frame.top(p.y));
    points += (points.empty() ? "" : " ") + x + "," + y;
    if (chart.marks == SvgChart::Marks::points)
      circles += "<circle class=\"line c" + std::to_string(line.color % kColors) + "\" cx=\"" + x + "\" cy=\"" + y +
                 "\" r=\"3\"/>\n";
  }
  end_part();
  return out + circles;
}

std::string legend(const SvgChart& chart) {
  std::string out;
  const double column = (kWidth - kLeft - kRight) / kLegendColumns;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const double x = kLeft + column * static_cast<double>(i % kLegendColumns);
    const double y = kTop + kPlotHeight + kAxisHeight + kRowHeight * static_cast<double>(i / kLegendColumns) + 8;
    out += "<line class=\"" + stroke_class(chart.lines[i]) + "\" x1=\"" + pixel(x) + "\" x2=\"" + pixel(x + 26) +
           "\" y1=\"" + pixel(y) + "\" y2=\"" + pixel(y) + "\"/>\n" +
           text_at(x + 32, y + 4, "start", chart.lines[i].name);
  }
  return out;
}

}  // namespace

std::vector<AxisTick> round_ticks(double low, double high, int wanted) {
  const double rough = (high - low) / std::max(wanted, 1);
  if (!(rough > 0) || !std::isfinite(rough)) return {};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  std::vector<AxisTick> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && ticks.size() < 32; ++i)
    ticks.push_back({i * step, number_text(i == 0 ? 0 : i * step)});
  return ticks;
}

std::string svg_chart(const SvgChart& chart) {
  Frame frame;
  for (const SvgLine& line : chart.lines)
    for (const views::Point& p : line.points)
      if (std::isfinite(p.x) && std::isfinite(p.y)) frame.x.include(p.x), frame.y.include(p.y);
  if (frame.x.empty()) return {};
  if (chart.base == SvgChart::Base::zero) frame.y.include(0);
  frame.x = widened(frame.x);
  frame.y = widened(frame.y);
  if (!std::isfinite(frame.x.high - frame.x.low) || !std::isfinite(frame.y.high - frame.y.low)) return {};
  const size_t rows = (chart.lines.size() + kLegendColumns - 1) / kLegendColumns;
  const double height = kTop + kPlotHeight + kAxisHeight + kRowHeight * static_cast<double>(rows) + 6;
  std::string out = "<figure>\n<figcaption>" + escape_html(chart.title) + "</figcaption>\n<svg viewBox=\"0 0 " +
                    pixel(kWidth) + " " + pixel(height) + "\" role=\"img\" aria-label=\"" + escape_html(chart.title) +
                    "\">\n" + axes(chart, frame);
  for (const SvgLine& line : chart.lines) out += strokes(chart, line, frame);
  return out + legend(chart) + "</svg>\n</figure>\n";
}

}  // namespace mw::report
