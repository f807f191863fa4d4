// SPDX-License-Identifier: GPL-3.0-or-later
// Fills the charts of the Compare page with the data of the runs.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/pages/compare/compare_charts.h"
#include "ui/run_views/sweep_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using views::SweepMetric;
constexpr size_t kMostMarks = 40;  // per line; more would overlap

std::vector<Tick> length_stops(const std::vector<int>& lens) {
  std::vector<Tick> out;
  for (const int len : lens) out.push_back({std::log2(std::max(1, len)), QString::number(len)});
  return out;
}

double largest_x(const std::vector<PlotLine>& lines) {
  double most = 0;
  for (const PlotLine& line : lines)
    if (line.raw && !line.raw->empty()) most = std::max(most, line.raw->back().x);
  return most;
}

}  // namespace

std::vector<PlotLine> CompareCharts::lines(const std::vector<compare::ComparedLine>& all, SweepMetric metric) const {
  std::vector<PlotLine> out;
  for (const auto& line : all) {
    const bool any =
        std::any_of(line.samples.begin(), line.samples.end(), [](const auto& s) { return std::isfinite(s.value); });
    if (!any) continue;
    const auto& run = runs_[line.column];
    out.push_back(line_of(line.samples, name(line.column), origin_of(run.provenance), static_cast<int>(line.column)));
    add_flags(out.back(), line.samples, run.sweep->findings, metric);
  }
  return out;
}

void CompareCharts::fill_load() {
  const views::LoadAxis axis = compare::load_axis(runs_, input_len());
  by_load_->set_x(tr("rate"), Quantity::plain);
  by_load_->set_stops(ticks_of(axis));
  by_load_->set_data(range_of(by_load_->stops()));
  static constexpr SweepMetric kShown[] = {SweepMetric::ttft, SweepMetric::tpot, SweepMetric::output_throughput};
  for (size_t i = 0; i < std::size(kShown); ++i) {
    Plot* plot = plots(CompareView::load)[i];
    plot->set_lines(lines(compare::lines_by_load(runs_, input_len(), axis, kShown[i]), kShown[i]));
    plot->set_levels(slo_levels(slo_, kShown[i]));
  }
}

// The physical lower bound, if the audit computed it.
PlotLine CompareCharts::floor_line() const {
  PlotLine line{.name = tr("floor"), .color = theme().bad, .origin = Origin::asked};
  std::map<double, double> floors;
  for (const auto& run : runs_)
    if (run.sweep)
      for (const auto& f : run.sweep->findings)
        if (f.floor > 0 && f.rule == "FLOOR-PREFILL" && f.point < run.sweep->set.points.size()) {
          const double place = std::log2(std::max(1, run.sweep->set.points[f.point].input_len));
          const auto [at, fresh] = floors.try_emplace(place, f.floor / 1e3);
          if (!fresh) at->second = std::min(at->second, f.floor / 1e3);
        }
  auto series = std::make_shared<views::Series>();
  for (const auto& [place, floor] : floors) series->append(place, floor);
  line.raw = std::move(series);
  return line;
}

void CompareCharts::fill_length() {
  by_length_->set_x(tr("prompt tokens"), Quantity::plain);
  by_length_->set_stops(length_stops(compare::input_lens(runs_)));
  by_length_->set_data(range_of(by_length_->stops()));
  static constexpr SweepMetric kShown[] = {SweepMetric::ttft, SweepMetric::tpot, SweepMetric::output_throughput};
  for (size_t i = 0; i < std::size(kShown); ++i) {
    Plot* plot = plots(CompareView::length)[i];
    auto all = lines(compare::lines_by_length(runs_, load(), kShown[i]), kShown[i]);
    if (kShown[i] == SweepMetric::ttft)
      if (PlotLine floor = floor_line(); !floor.raw->empty()) all.push_back(std::move(floor));
    plot->set_lines(std::move(all));
    plot->set_levels(slo_levels(slo_, kShown[i]));
  }
}

PlotLine CompareCharts::points_line(const std::vector<views::Point>& path, size_t column) const {
  auto sorted = path;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  auto series = std::make_shared<views::Series>();
  for (const auto& p : sorted) series->append(p.x, p.y);
  const int group = static_cast<int>(column);
  return {.name = name(column),
          .color = theme().series(group),
          .raw = std::move(series),
          .origin = origin_of(runs_[column].provenance),
          .marks = marks_of(group),
          .path = path,
          .group = group};
}

void CompareCharts::fill_curve() {
  by_throughput_->set_x(tr("output tokens/s"), Quantity::plain);
  static constexpr SweepMetric kShown[] = {SweepMetric::ttft, SweepMetric::tpot};
  double most = 0;
  for (size_t i = 0; i < std::size(kShown); ++i) {
    std::vector<PlotLine> all;
    for (const auto& curve : compare::latency_against_throughput(runs_, input_len(), kShown[i]))
      all.push_back(points_line(curve.path, curve.column));
    most = std::max(most, largest_x(all));
    plots(CompareView::curve)[i]->set_lines(std::move(all));
    plots(CompareView::curve)[i]->set_levels(slo_levels(slo_, kShown[i]));
  }
  by_throughput_->set_data({0, most * 1.05});
}

void CompareCharts::fill_distribution() {
  const std::pair<SweepMetric, PlotLink*> kShown[] = {{SweepMetric::ttft, by_ttft_}, {SweepMetric::tpot, by_tpot_}};
  for (size_t i = 0; i < std::size(kShown); ++i) {
    const auto [metric, link] = kShown[i];
    std::vector<PlotLine> all;
    for (size_t c = 0; c < runs_.size(); ++c) {
      const auto* point = compare::point_at(runs_[c], input_len(), load());
      if (!point) continue;
      auto path = compare::cumulative(compare::request_values(*point, metric));
      for (auto& p : path) p.y *= 100;
      if (path.empty()) continue;
      all.push_back(points_line(path, c));
      all.back().marks = Marks::none;
      all.back().path.clear();
    }
    link->set_x(qs(views::label_of(metric)), Quantity::seconds);
    link->set_data({0, largest_x(all) * 1.02});
    std::vector<LevelLine> limits;
    for (const LevelLine& level : slo_levels(slo_, metric)) limits.push_back(level);
    plots(CompareView::distribution)[i]->set_lines(std::move(all));
    plots(CompareView::distribution)[i]->set_limits(std::move(limits));
  }
}

void CompareCharts::fill_heat() {
  const auto metric = views::kSweepMetrics[static_cast<size_t>(std::max(0, metric_->currentIndex()))];
  std::vector<HeatMapView::Grid> grids;
  for (size_t c = 0; c < runs_.size(); ++c)
    if (runs_[c].sweep) grids.push_back({name(c), compare::heat_map(runs_, c, metric)});
  heat_->show_grids(std::move(grids), metric);
}

void CompareCharts::fill_cost() {
  const views::LoadAxis axis = compare::load_axis(runs_, input_len());
  by_cost_load_->set_x(tr("rate"), Quantity::plain);
  by_cost_load_->set_stops(ticks_of(axis));
  by_cost_load_->set_data(range_of(by_cost_load_->stops()));
  plots(CompareView::cost)[0]->set_lines(
      lines(compare::lines_by_load(runs_, input_len(), axis, SweepMetric::cost), SweepMetric::cost));
  std::vector<double> once;
  for (const QString& part : once_->text().split(u',', Qt::SkipEmptyParts)) once.push_back(part.trimmed().toDouble());
  const auto costs = compare::serving_costs(runs_, demand_->text().toDouble(), once);
  constexpr double kMonth = 720;
  double most = kMonth / 10;
  QStringList said;
  std::vector<LevelLine> limits;
  for (size_t i = 1; i < costs.size(); ++i)
    if (const auto hours = compare::break_even(costs[0], costs[i])) {
      most = std::max(most, *hours * 1.6);
      said << tr("%1 and %2 have cost the same after %3 h")
                  .arg(name(costs[0].column), name(costs[i].column))
                  .arg(*hours, 0, 'f', *hours < 10 ? 1 : 0);
      limits.push_back({tr("even"), *hours, theme().series(static_cast<int>(costs[i].column)), Origin::asked,
                        tr("%1 h").arg(*hours, 0, 'f', 0)});
    }
  std::vector<PlotLine> all;
  for (const auto& cost : costs) {
    const std::vector<views::Point> path{{0, cost.at(0)}, {most, cost.at(most)}};
    all.push_back(points_line(path, cost.column));
    if (cost.servers > 1) all.back().name += tr(", %1 servers").arg(cost.servers);
  }
  by_hours_->set_x(tr("hours"), Quantity::plain);
  by_hours_->set_data({0, most});
  plots(CompareView::cost)[1]->set_lines(std::move(all));
  plots(CompareView::cost)[1]->set_limits(std::move(limits));
  break_even_->setText(said.isEmpty() && costs.size() > 1 ? tr("No break-even: one is cheaper from the first hour")
                                                          : said.join(u"; "_s));
}

void CompareCharts::fill_loss() {
  static constexpr const char* kMetrics[] = {"train/loss", "eval/loss"};
  double most = 1;
  for (size_t i = 0; i < std::size(kMetrics); ++i) {
    std::vector<PlotLine> all;
    for (size_t c = 0; c < runs_.size(); ++c) {
      const views::MetricSeries* metric = runs_[c].training ? runs_[c].training->metric(kMetrics[i]) : nullptr;
      if (!metric || metric->raw.empty()) continue;
      const int group = static_cast<int>(c);
      PlotLine line{.name = name(c),
                    .color = theme().series(group),
                    .raw = std::make_shared<views::Series>(metric->raw),
                    .origin = origin_of(runs_[c].provenance),
                    .marks = metric->raw.size() < kMostMarks ? marks_of(group) : Marks::none,
                    .group = group};
      if (i == 0) line.smooth = std::make_shared<views::Series>(metric->smooth.series());
      most = std::max(most, metric->raw.back().x);
      all.push_back(std::move(line));
    }
    plots(CompareView::loss)[i]->set_lines(std::move(all));
  }
  std::vector<PlotLine> apart;
  for (const auto& curve : compare::loss_differences(runs_)) {
    apart.push_back(points_line(curve.path, curve.column));
    if (curve.path.size() >= kMostMarks) apart.back().marks = Marks::none;
  }
  plots(CompareView::loss)[std::size(kMetrics)]->set_lines(std::move(apart));
  by_step_->set_x(tr("step"), Quantity::count);
  by_step_->set_data({0, most});
}

}  // namespace mw::ui
