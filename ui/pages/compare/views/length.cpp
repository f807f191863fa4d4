// SPDX-License-Identifier: GPL-3.0-or-later
// Latency and throughput against the prompt length, at one load.
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/pages/compare/compare_view.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

double place_of(int input_len) {
  return std::log2(std::max(1, input_len));
}

// The physical lower bound of TTFT, where the audit computed it.
ChartLine floor_line(const CompareInput& in) {
  std::map<double, double> floors;
  for (const auto& run : in.runs)
    if (run.sweep)
      for (const auto& f : run.sweep->findings)
        if (f.floor > 0 && f.rule == "FLOOR-PREFILL" && f.point < run.sweep->set.points.size()) {
          const double seconds = f.floor / 1e3;
          const auto [at, fresh] = floors.try_emplace(place_of(run.sweep->set.points[f.point].input_len), seconds);
          if (!fresh) at->second = std::min(at->second, seconds);
        }
  auto series = std::make_shared<views::Series>();
  for (const auto& [place, floor] : floors) series->append(place, floor);
  return {.name = CompareView::tr("floor"),
          .color = theme().bad,
          .raw = std::move(series),
          .origin = LineOrigin::requested};
}

void fill_by_length(const CompareInput& in, CompareView& view) {
  std::vector<Tick> stops;
  for (const int len : compare::input_lens(in.runs)) stops.push_back({place_of(len), QString::number(len)});
  set_axis(view.axis(), CompareView::tr("prompt tokens"), std::move(stops));
  for (size_t i = 0; i < kSweepMetrics.size(); ++i) {
    auto lines = sweep_lines(in, compare::lines_by_length(in.runs, in.load, kSweepMetrics[i]), kSweepMetrics[i]);
    if (kSweepMetrics[i] == views::SweepMetric::ttft)
      if (ChartLine floor = floor_line(in); !floor.raw->empty()) lines.push_back(std::move(floor));
    view.charts()[i]->set_lines(std::move(lines));
    view.charts()[i]->set_levels(slo_levels(in.slo, kSweepMetrics[i]));
  }
}

}  // namespace

CompareViewSpec length_view() {
  return {.id = u"length"_s,
          .name = CompareView::tr("Length"),
          .place = 1,
          .kind = compare::ComparedKind::serving,
          .controls = request_load,
          .make = charts_view(sweep_chart_specs(), fill_by_length)};
}

}  // namespace mw::ui
