// SPDX-License-Identifier: Apache-2.0
#include "core/report/report_charts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "core/base/units.h"
#include "core/compare/compare_charts.h"
#include "core/present/html.h"

namespace mw::report {
namespace {

using compare::ComparedRun;

constexpr int kColumns = 600;  // of the decimated series: more than a chart has pixels for
constexpr size_t kMostCharts = 24;

struct KnownMetric {
  const char *name, *title, *unit;
};
// In the order of the charts; other metrics follow under their own names.
constexpr std::array kKnown{KnownMetric{"train/loss", "Training loss", "nats/token"},
                            KnownMetric{"eval/loss", "Eval loss", "nats/token"},
                            KnownMetric{"eval/perplexity", "Eval perplexity", "perplexity"},
                            KnownMetric{"eval/answers_right", "Scored answers that are right", "share"},
                            KnownMetric{"train/learning_rate", "Learning rate", "rate"},
                            KnownMetric{"train/grad_norm", "Gradient norm", "norm"},
                            KnownMetric{"train/tokens_per_second", "Speed", "tokens/s"}};

// The metrics of all runs.
std::vector<std::string> metric_names(const std::vector<ComparedRun>& runs) {
  std::set<std::string> all;
  for (const ComparedRun& run : runs)
    if (run.training)
      for (const auto& [name, series] : run.training->metrics()) all.insert(name);
  std::vector<std::string> names;
  for (const KnownMetric& known : kKnown)
    if (all.erase(known.name) > 0) names.emplace_back(known.name);
  names.insert(names.end(), all.begin(), all.end());
  names.resize(std::min(names.size(), kMostCharts));
  return names;
}

std::vector<views::Point> whole(const views::Series& series) {
  return series.empty() ? std::vector<views::Point>() : series.decimate(series[0].x, series.back().x, kColumns);
}

std::string metric_charts(const std::vector<ComparedRun>& runs, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& metric : metric_names(runs)) {
    const auto known =
        std::find_if(kKnown.begin(), kKnown.end(), [&](const KnownMetric& k) { return metric == k.name; });
    SvgChart chart{.title = known != kKnown.end() ? known->title : metric,
                   .x_title = "step",
                   .y_title = known != kKnown.end() ? known->unit : metric,
                   .lines = {}};
    for (size_t c = 0; c < runs.size(); ++c)
      if (const views::MetricSeries* series = runs[c].training ? runs[c].training->metric(metric) : nullptr)
        chart.lines.push_back({names[c], whole(series->raw), runs[c].provenance, c});
    if (chart.lines.empty()) continue;
    const bool few = std::all_of(chart.lines.begin(), chart.lines.end(),
                                 [](const SvgLine& line) { return line.points.size() <= 40; });
    if (few) chart.marks = SvgChart::Marks::points;
    out += svg_chart(chart);
  }
  return out;
}

// The device of each run with the largest peak, and its predicted peak.
std::string memory_chart(const std::vector<ComparedRun>& runs, const std::vector<std::string>& names) {
  constexpr double kMib = 1024.0 * 1024, kGib = 1024 * kMib;
  SvgChart chart{.title = "Memory of the fullest device", .x_title = "step", .y_title = "MiB", .lines = {}};
  chart.base = SvgChart::Base::zero;
  for (size_t c = 0; c < runs.size(); ++c) {
    if (!runs[c].training || runs[c].training->memory().empty()) continue;
    const auto& devices = runs[c].training->memory();
    const auto fullest = std::max_element(devices.begin(), devices.end(),
                                          [](const auto& a, const auto& b) { return a.second.peak < b.second.peak; });
    SvgLine line{names[c] + ", measured", whole(fullest->second.total_by_step), runs[c].provenance, c};
    for (views::Point& p : line.points) p.y /= kMib;
    if (line.points.empty()) continue;
    const double from = line.points.front().x, to = line.points.back().x;
    chart.lines.push_back(std::move(line));
    if (const auto predicted = runs[c].training->predicted()) {
      const double peak = static_cast<double>(predicted->total().value) / kMib;
      chart.lines.push_back(
          {names[c] + ", predicted peak", {{from, peak}, {to, peak}}, formats::ResultProvenance::predicted, c});
    }
  }
  double most = 0;
  for (const SvgLine& line : chart.lines)
    for (const views::Point& p : line.points) most = std::max(most, p.y);
  if (most < kGib / kMib) return svg_chart(chart);
  chart.y_title = "GiB";
  for (SvgLine& line : chart.lines)
    for (views::Point& p : line.points) p.y *= kMib / kGib;
  return svg_chart(chart);
}

std::string load_charts(const std::vector<ComparedRun>& runs, const std::vector<std::string>& names) {
  std::string out;
  for (const int length : compare::input_lens(runs)) {
    const views::LoadAxis axis = compare::load_axis(runs, length);
    for (const views::SweepMetric metric : {views::SweepMetric::ttft, views::SweepMetric::tpot,
                                            views::SweepMetric::e2el, views::SweepMetric::output_throughput}) {
      const bool latency = views::is_latency(metric);
      SvgChart chart{.title = views::label_of(metric) + " by load" +
                              (length > 0 ? ", " + std::to_string(length) + " input tokens" : ""),
                     .x_title = "rate (requests/s)",
                     .y_title = views::label_of(metric) + (latency ? " (ms, median)" : " (tokens/s)"),
                     .lines = {}};
      chart.base = SvgChart::Base::zero;
      chart.marks = SvgChart::Marks::points;
      for (const views::LoadAxis::Stop& stop : axis.stops()) chart.x_ticks.push_back({stop.place, stop.label});
      for (const compare::ComparedLine& line : compare::lines_by_load(runs, length, axis, metric)) {
        std::vector<views::Point> points;
        for (const views::ChartSample& sample : line.samples)
          points.push_back({sample.place, latency ? 1000 * sample.value : sample.value});
        chart.lines.push_back({names[line.column], std::move(points), runs[line.column].provenance, line.column});
      }
      out += svg_chart(chart);
    }
  }
  return out;
}

}  // namespace

std::string report_charts(const std::vector<ComparedRun>& runs, const std::vector<std::string>& names) {
  const bool serving =
      std::all_of(runs.begin(), runs.end(), [](const ComparedRun& run) { return run.sweep.has_value(); });
  if (serving) return load_charts(runs, names);
  return metric_charts(runs, names) + memory_chart(runs, names);
}

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
  return "<text x=\"" + pixel(x) + "\" y=\"" + pixel(y) + "\" text-anchor=\"" + anchor + "\">" +
         present::escape_html(text) + "</text>\n";
}

std::string stroke_class(const SvgLine& line) {
  const bool measured = line.provenance == formats::ResultProvenance::measured;
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
         ") rotate(-90)\" text-anchor=\"middle\">" + present::escape_html(chart.y_title) + "</text>\n";
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
  std::string out = "<figure>\n<figcaption>" + present::escape_html(chart.title) +
                    "</figcaption>\n<svg viewBox=\"0 0 " + pixel(kWidth) + " " + pixel(height) +
                    "\" role=\"img\" aria-label=\"" + present::escape_html(chart.title) + "\">\n" + axes(chart, frame);
  for (const SvgLine& line : chart.lines) out += strokes(chart, line, frame);
  return out + legend(chart) + "</svg>\n</figure>\n";
}

}  // namespace mw::report
