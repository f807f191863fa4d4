// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_view.h"

#include <algorithm>
#include <cmath>

#include "compare_view_list.h"  // generated: the functions of the files in views
#include "core/compare/compared_snapshots.h"
#include "ui/run_views/run_lines.h"

namespace mw::ui {
namespace {

constexpr size_t kMostMarks = 40;  // per line; more would overlap

class ChartsView : public CompareView {
 public:
  using Fill = void (*)(const CompareInput&, CompareView&);
  ChartsView(const CompareInput& input, const std::vector<ChartSpec>& charts, Fill set_lines)
      : CompareView(input), fill_(set_lines) {
    add_charts(charts);
  }
  void fill() override { fill_(in_, *this); }

 private:
  Fill fill_;
};

QString no_metric() {
  return CompareView::tr("These runs do not record this metric");
}

std::shared_ptr<views::Series> series_of(const std::vector<views::Point>& points) {
  auto series = std::make_shared<views::Series>();
  for (const auto& p : points) series->append(p.x, p.y);
  return series;
}

// Empty: the run does not record the metric.
ChartLine training_line(const CompareInput& in, size_t run, const std::string& metric) {
  const views::RunView& view = *in.runs[run].training;
  ChartLine line = metric.empty() ? answers_line(view.answers()) : ChartLine();
  if (const auto* recorded = view.metric(metric)) {
    line.raw = std::make_shared<views::Series>(recorded->raw);
    if (metric.starts_with("train/")) line.smooth = std::make_shared<views::Series>(recorded->smooth.series());
  }
  if (in.by_time)
    for (auto* series : {&line.raw, &line.smooth})
      if (*series) *series = std::make_shared<views::Series>(compare::metric_by_time(view, **series));
  if (!line.raw || line.raw->empty()) return {};
  line.group = static_cast<int>(run);
  line.name = metric.empty() ? CompareView::tr("%1: %2").arg(in.run_name(run), line.name) : in.run_name(run);
  line.color = theme().series(line.group);
  line.origin = origin_of(in.runs[run].provenance);
  line.marks = line.raw->size() < kMostMarks ? marks_of(line.group) : Marks::none;
  return line;
}

}  // namespace

QString CompareInput::run_name(size_t run) const {
  return CompareView::tr("%1 (%2)").arg(names[static_cast<qsizetype>(run)], origin_text(runs[run].provenance));
}

CompareView::CompareView(const CompareInput& input) : in_(input), column_(flush_layout<QVBoxLayout>(this, 3)) {}

void CompareView::add_charts(const std::vector<ChartSpec>& charts) {
  auto* row = make_splitter(Qt::Horizontal, this);
  row->setChildrenCollapsible(false);
  for (const ChartSpec& spec : charts) {
    auto* chart = new Chart({.title = spec.title,
                             .unit = spec.unit,
                             .quantity = spec.quantity,
                             .empty = spec.empty,
                             .from_zero = spec.from_zero},
                            axis(spec.axis), row);
    chart->set_scale(spec.scale);
    connect(chart, &Chart::group_hovered, this, &CompareView::hovered);
    charts_.push_back(chart);
  }
  column_->addWidget(row, 1);
}

void CompareView::set_emphasis(int run) {
  for (Chart* chart : charts_) chart->set_emphasis(run);
}

bool CompareView::has_curves() const {
  return std::ranges::any_of(charts_, [](const Chart* chart) {
    return std::ranges::any_of(chart->lines(), [](const ChartLine& l) { return l.group >= 0 && l.raw->size() > 1; });
  });
}

const std::vector<CompareViewSpec>& compare_views() {
  static const std::vector<CompareViewSpec> views = [] {
    std::vector<CompareViewSpec> all = view_of_each_file();
    std::ranges::sort(all, {}, &CompareViewSpec::place);
    return all;
  }();
  return views;
}

std::function<CompareView*(const CompareInput&)> charts_view(std::vector<ChartSpec> charts, ChartsView::Fill fill) {
  return [charts = std::move(charts), fill](const CompareInput& in) { return new ChartsView(in, charts, fill); };
}

ChartSpec latency_spec(const QString& title, const QString& unit) {
  return {title, unit, no_metric(), AxisQuantity::seconds, Scale::logarithmic};
}

ChartSpec share_spec(const QString& title, const QString& unit, const QString& empty, size_t axis) {
  return {title, unit, empty.isEmpty() ? no_metric() : empty, AxisQuantity::plain, Scale::linear, axis, true};
}

ChartSpec token_cost_spec() {
  return {CompareView::tr("Cost of tokens"), CompareView::tr("USD per million tokens"),
          CompareView::tr("The prices of these runs are unknown"), AxisQuantity::plain, Scale::logarithmic};
}

std::vector<ChartSpec> sweep_chart_specs() {
  const QString spread = CompareView::tr("median to p99");
  return {latency_spec(u"TTFT"_s, spread),
          latency_spec(u"TPOT"_s, spread),
          {CompareView::tr("Throughput"), CompareView::tr("output tokens/s"), no_metric()}};
}

void set_axis(ChartLink& axis, const QString& name, std::vector<Tick> stops) {
  axis.set_x(name, AxisQuantity::plain);
  axis.set_data(range_of(stops));
  axis.set_stops(std::move(stops));
}

std::vector<ChartLine> sweep_lines(const CompareInput& in, const std::vector<compare::ComparedLine>& lines,
                                   views::SweepMetric metric) {
  std::vector<ChartLine> out;
  for (const auto& line : lines) {
    if (std::ranges::none_of(line.samples, [](const auto& s) { return std::isfinite(s.value); })) continue;
    const auto& run = in.runs[line.column];
    out.push_back(
        line_of(line.samples, in.run_name(line.column), origin_of(run.provenance), static_cast<int>(line.column)));
    add_flags(out.back(), line.samples, run.sweep->findings, metric);
  }
  return out;
}

ChartLine path_line(const CompareInput& in, const std::vector<views::Point>& path, size_t run) {
  auto sorted = path;
  std::ranges::stable_sort(sorted, {}, &views::Point::x);
  const int group = static_cast<int>(run);
  return {.name = in.run_name(run),
          .color = theme().series(group),
          .raw = series_of(sorted),
          .origin = origin_of(in.runs[run].provenance),
          .marks = path.size() < kMostMarks ? marks_of(group) : Marks::none,
          .path = path,
          .group = group};
}

double largest_x(const std::vector<ChartLine>& lines) {
  double most = 0;
  for (const ChartLine& line : lines)
    if (line.raw && !line.raw->empty()) most = std::max(most, line.raw->back().x);
  return most;
}

void show_trade_offs(const CompareInput& in, CompareView& view,
                     const std::vector<std::vector<compare::ComparedCurve>>& curves, const QString& x) {
  double most = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    std::vector<ChartLine> all;
    for (const auto& curve : curves[i]) all.push_back(path_line(in, curve.path, curve.column));
    most = std::max(most, largest_x(all));
    if (const auto front = compare::pareto_front(curves[i]); front.size() > 1)
      all.push_back({.name = CompareView::tr("Pareto front"),
                     .color = theme().text,
                     .raw = series_of(front),
                     .origin = LineOrigin::requested});
    view.charts()[i]->set_lines(std::move(all));
  }
  view.axis().set_x(x, AxisQuantity::plain);
  view.axis().set_data({0, std::max(1.0, most * 1.05)});
}

void show_training(const CompareInput& in, CompareView& view, const std::vector<std::string>& metrics) {
  double most = 1;
  for (size_t i = 0; i < metrics.size(); ++i) {
    std::vector<ChartLine> all;
    for (size_t run = 0; run < in.runs.size(); ++run)
      if (ChartLine line = in.runs[run].training ? training_line(in, run, metrics[i]) : ChartLine(); line.raw)
        all.push_back(std::move(line));
    most = std::max(most, largest_x(all));
    view.charts()[i]->set_lines(std::move(all));
  }
  in.steps.set_x(in.by_time ? CompareView::tr("time") : CompareView::tr("step"),
                 in.by_time ? AxisQuantity::seconds : AxisQuantity::count);
  in.steps.set_data({0, most});
}

}  // namespace mw::ui

#include "moc_compare_view.cpp"
