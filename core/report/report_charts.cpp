// SPDX-License-Identifier: Apache-2.0
#include "core/report/report_charts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "core/compare/compare_charts.h"
#include "core/report/svg_chart.h"

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
          {names[c] + ", predicted peak", {{from, peak}, {to, peak}}, formats::Provenance::predicted, c});
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

}  // namespace mw::report
