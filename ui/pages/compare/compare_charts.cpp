// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_charts.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTabBar>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/why_view.h"
#include "ui/run_views/sweep_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

using views::SweepMetric;
constexpr const char* kChosen = "chosen";  // by the user

// Keeps the user's choice if it is still available, otherwise selects the default.
void offer(QComboBox& box, const QStringList& texts, const QString& usual) {
  const QString before = box.property(kChosen).toBool() ? box.currentText() : QString();
  const QSignalBlocker quiet(box);
  box.clear();
  box.addItems(texts);
  const int kept = static_cast<int>(texts.indexOf(before));
  box.setCurrentIndex(kept >= 0 ? kept : std::max(0, static_cast<int>(texts.indexOf(usual))));
}

constexpr size_t kMostMarks = 40;  // per line; more would overlap

// Of the charts by load and by length, in their order.
constexpr SweepMetric kShown[] = {SweepMetric::ttft, SweepMetric::tpot, SweepMetric::output_throughput};

void set_axis(ChartLink& link, const QString& name, std::vector<Tick> stops) {
  link.set_x(name, Quantity::plain);
  link.set_data(range_of(stops));
  link.set_stops(std::move(stops));
}

std::vector<Tick> length_stops(const std::vector<int>& lens) {
  std::vector<Tick> out;
  for (const int len : lens) out.push_back({std::log2(std::max(1, len)), QString::number(len)});
  return out;
}

double largest_x(const std::vector<ChartLine>& lines) {
  double most = 0;
  for (const ChartLine& line : lines)
    if (line.raw && !line.raw->empty()) most = std::max(most, line.raw->back().x);
  return most;
}

}  // namespace

CompareCharts::CompareCharts(const std::vector<compare::ComparedRun>& runs, hardware::LoadCatalogue catalogue,
                             QWidget* parent)
    : QWidget(parent), runs_(runs), catalogue_(std::move(catalogue)) {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  tabs_ = new QTabBar(this);
  tabs_->setAccessibleName(tr("What the charts show"));
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  column->addWidget(tabs_);
  column->addWidget(controls());
  stack_ = new QStackedWidget(this);
  const QString names[] = {tr("Rate"),     tr("Curves"), tr("Length"), tr("CDF"),
                           tr("Heat map"), tr("Cost"),   tr("Why"),    tr("Loss")};
  for (int v = 0; v < kCompareViews; ++v) {
    tabs_->addTab(names[v]);
    stack_->addWidget(page(static_cast<CompareView>(v)));
  }
  column->addWidget(stack_, 1);
  connect(tabs_, &QTabBar::currentChanged, this, [this](int at) {
    stack_->setCurrentIndex(at);
    fill();
  });
  connect(tabs_, &QTabBar::tabBarClicked, this, [this] { chosen_ = true; });
  for (QComboBox* box : {length_, load_, metric_})
    connect(box, &QComboBox::currentIndexChanged, this, &CompareCharts::fill);
  for (QComboBox* box : {length_, load_})
    connect(box, &QComboBox::activated, this, [box] { box->setProperty(kChosen, true); });
  for (QLineEdit* line : {demand_, once_}) connect(line, &QLineEdit::textChanged, this, &CompareCharts::fill);
  connect(heat_, &HeatMapView::chosen, this, [this](int, int input_len, const QString& load) {
    choose_cell(input_len, load);
    show_view(CompareView::distribution);
  });
  refresh();
}

Chart* CompareCharts::add_chart(CompareView view, QWidget* parent, ChartOptions options, ChartLink& link) {
  auto* chart = new Chart(std::move(options), link, parent);
  connect(chart, &Chart::group_hovered, this, &CompareCharts::hovered);
  charts_[static_cast<size_t>(view)].push_back(chart);
  return chart;
}

QWidget* CompareCharts::controls() {
  auto* bar = new QWidget(this);
  auto* row = make_layout<QHBoxLayout>(bar, {2, 0, 2, 0}, 5);
  length_label_ = add_labelled(*row, tr("Prompt"), length_ = new QComboBox);
  load_label_ = add_labelled(*row, tr("Load"), load_ = new QComboBox);
  metric_label_ = add_labelled(*row, tr("Metric"), metric_ = new QComboBox);
  for (const SweepMetric m : all_values<SweepMetric>()) metric_->addItem(qs(views::label_of(m)));
  row->addStretch(1);
  return bar;
}

QWidget* CompareCharts::page(CompareView view) {
  if (view == CompareView::heat) return heat_page();
  if (view == CompareView::cost) return cost_page();
  if (view == CompareView::why) return why_ = new WhyView(runs_, catalogue_, this);
  auto* column = make_splitter(Qt::Vertical, this);
  column->setChildrenCollapsible(false);
  if (view == CompareView::load || view == CompareView::length) {
    ChartLink& link = view == CompareView::load ? by_load_ : by_length_;
    add_latency_charts(view, column, tr("median to p99"), link);
    add_chart(view, column,
              {.title = tr("Throughput"),
               .unit = tr("output tokens/s"),
               .quantity = Quantity::plain,
               .empty = tr("These runs do not record this metric")},
              link);
  } else if (view == CompareView::curve) {
    add_latency_charts(view, column, tr("median, by output tokens/s"), by_throughput_);
  } else if (view == CompareView::distribution) {
    add_distribution_charts(column);
  } else {
    add_loss_charts(column);
  }
  return column;
}

QWidget* CompareCharts::heat_page() {
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setWidget(heat_ = new HeatMapView(scroll));
  return scroll;
}

void CompareCharts::add_latency_charts(CompareView view, QWidget* parent, const QString& unit, ChartLink& link) {
  for (const QString& title : {tr("TTFT"), tr("TPOT")})
    add_chart(view, parent,
              {.title = title,
               .unit = unit,
               .quantity = Quantity::seconds,
               .empty = tr("These runs do not record this metric")},
              link)
        ->set_scale(Scale::logarithmic);
}

void CompareCharts::add_distribution_charts(QWidget* parent) {
  for (const auto& [title, link] : {std::pair{tr("TTFT"), &by_ttft_}, {tr("TPOT"), &by_tpot_}})
    add_chart(CompareView::distribution, parent,
              {.title = title,
               .unit = tr("% of requests at or below"),
               .quantity = Quantity::plain,
               .empty = tr("No run records the requests of this cell"),
               .from_zero = true},
              *link);
}

void CompareCharts::add_loss_charts(QWidget* parent) {
  add_chart(
      CompareView::loss, parent,
      {.title = tr("Training loss"), .unit = tr("nats per token"), .empty = tr("The comparison has no training runs")},
      by_step_);
  add_chart(CompareView::loss, parent,
            {.title = tr("Held-out loss"), .unit = tr("nats per token"), .empty = tr("No held-out loss is recorded")},
            by_step_);
  add_chart(CompareView::loss, parent,
            {.title = tr("Difference from the baseline"),
             .unit = tr("absolute, % of its training loss"),
             .empty = tr("The baseline shares no step with another run, or all losses are bit-identical")},
            by_step_)
      ->set_scale(Scale::logarithmic);
}

QWidget* CompareCharts::cost_page() {
  auto* whole = new QWidget(this);
  auto* rows = flush_layout<QVBoxLayout>(whole, 3);
  auto* bar = new QWidget(whole);
  auto* row = make_layout<QHBoxLayout>(bar, {2, 0, 2, 0});
  const auto line = [&](const QString& text, const QString& hint, const QString& tip) {
    auto* edit = new QLineEdit;
    edit->setPlaceholderText(hint);
    edit->setToolTip(tip);
    edit->setMaximumWidth(130);
    add_labelled(*row, text, edit);
    return edit;
  };
  demand_ = line(tr("Demand, tokens/s"), tr("one server"),
                 tr("Output tokens per second to serve, which determines the number of servers"));
  once_ = line(tr("Paid once, USD"), tr("0, 0"),
               tr("Costs before serving begins, such as training and porting: one number per run, in order"));
  row->addStretch(1);
  rows->addWidget(bar);
  break_even_ = new QLabel(whole);
  break_even_->setWordWrap(true);
  break_even_->setContentsMargins(4, 0, 4, 0);
  break_even_->setAccessibleName(tr("Break-even"));
  rows->addWidget(break_even_);
  auto* column = make_splitter(Qt::Vertical, whole);
  column->setChildrenCollapsible(false);
  add_chart(CompareView::cost, column,
            {.title = tr("Cost of tokens"),
             .unit = tr("USD per million output tokens"),
             .empty = tr("The prices of these runs are unknown")},
            by_cost_load_)
      ->set_scale(Scale::logarithmic);
  add_chart(CompareView::cost, column,
            {.title = tr("Cost of serving"),
             .unit = tr("USD by hours of serving"),
             .empty = tr("The prices of these runs are unknown"),
             .from_zero = true},
            by_hours_);
  rows->addWidget(column, 1);
  return whole;
}

CompareView CompareCharts::view() const {
  return static_cast<CompareView>(tabs_->currentIndex());
}

void CompareCharts::show_view(CompareView view) {
  chosen_ = true;
  tabs_->setCurrentIndex(static_cast<int>(view));
}

void CompareCharts::choose_cell(int input_len, const QString& load) {
  for (QComboBox* box : {length_, load_}) box->setProperty(kChosen, true);
  length_->setCurrentText(QString::number(input_len));
  load_->setCurrentText(load);
}

int CompareCharts::input_len() const {
  return length_->currentText().toInt();
}

std::string CompareCharts::load() const {
  return ss(load_->currentText());
}

QString CompareCharts::name(size_t column) const {
  return tr("%1 (%2)").arg(short_names(runs_)[static_cast<qsizetype>(column)], origin_text(runs_[column].provenance));
}

void CompareCharts::set_slo(const serve::Slo& slo) {
  slo_ = slo;
  fill();
}

void CompareCharts::set_emphasis(int column) {
  for (const auto& view : charts_)
    for (Chart* p : view) p->set_emphasis(column);
  heat_->set_emphasis(column);
}

void CompareCharts::fill_choices() {
  QStringList lens, loads;
  for (const int len : compare::input_lens(runs_)) lens << QString::number(len);
  for (const auto& text : compare::loads_of(runs_)) loads << qs(text);
  offer(*length_, lens, QString::number(compare::usual_input_len(runs_)));
  offer(*load_, loads, qs(compare::usual_load(runs_)));
}

// Selects a view with data until the user chooses one.
void CompareCharts::refresh() {
  fill_choices();
  if (!chosen_) {
    const bool sweeps = std::any_of(runs_.begin(), runs_.end(), [](const auto& r) { return r.sweep.has_value(); });
    const bool training = std::any_of(runs_.begin(), runs_.end(), [](const auto& r) { return r.training.has_value(); });
    size_t loads = 0;
    for (const auto& r : runs_)
      if (r.sweep)
        for (const auto& line : r.sweep->lines) loads = std::max(loads, line.points.size());
    const auto view = !sweeps && training                  ? CompareView::loss
                      : loads == 1 && length_->count() > 1 ? CompareView::length
                                                           : CompareView::load;
    tabs_->setCurrentIndex(static_cast<int>(view));
  }
  fill();
}

void CompareCharts::fill() {
  const CompareView v = view();
  const bool cell = v == CompareView::distribution || v == CompareView::why;
  const bool by_length = v == CompareView::load || v == CompareView::curve || v == CompareView::cost || cell;
  const bool by_load = v == CompareView::length || cell;
  for (const auto& [label, shown] :
       {std::pair{length_label_, by_length}, {load_label_, by_load}, {metric_label_, v == CompareView::heat}}) {
    label->setVisible(shown);
    label->buddy()->setVisible(shown);
  }
  switch (v) {
    case CompareView::load:
      return fill_load();
    case CompareView::curve:
      return fill_curve();
    case CompareView::length:
      return fill_length();
    case CompareView::distribution:
      return fill_distribution();
    case CompareView::heat:
      return fill_heat();
    case CompareView::cost:
      return fill_cost();
    case CompareView::why:
      return why_->show_cell(input_len(), load());
    case CompareView::loss:
      return fill_loss();
  }
}

std::vector<ChartLine> CompareCharts::lines(const std::vector<compare::ComparedLine>& all, SweepMetric metric) const {
  std::vector<ChartLine> out;
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
  set_axis(by_load_, tr("rate"), ticks_of(axis));
  for (size_t i = 0; i < std::size(kShown); ++i) {
    Chart* chart = charts(CompareView::load)[i];
    chart->set_lines(lines(compare::lines_by_load(runs_, input_len(), axis, kShown[i]), kShown[i]));
    chart->set_levels(slo_levels(slo_, kShown[i]));
  }
}

// The physical lower bound, if the audit computed it.
ChartLine CompareCharts::floor_line() const {
  ChartLine line{.name = tr("floor"), .color = theme().bad, .origin = Origin::requested};
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
  set_axis(by_length_, tr("prompt tokens"), length_stops(compare::input_lens(runs_)));
  for (size_t i = 0; i < std::size(kShown); ++i) {
    Chart* chart = charts(CompareView::length)[i];
    auto all = lines(compare::lines_by_length(runs_, load(), kShown[i]), kShown[i]);
    if (kShown[i] == SweepMetric::ttft)
      if (ChartLine floor = floor_line(); !floor.raw->empty()) all.push_back(std::move(floor));
    chart->set_lines(std::move(all));
    chart->set_levels(slo_levels(slo_, kShown[i]));
  }
}

ChartLine CompareCharts::points_line(const std::vector<views::Point>& path, size_t column) const {
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
  by_throughput_.set_x(tr("output tokens/s"), Quantity::plain);
  double most = 0;
  for (size_t i = 0; i < charts(CompareView::curve).size(); ++i) {
    std::vector<ChartLine> all;
    for (const auto& curve : compare::latency_against_throughput(runs_, input_len(), kShown[i]))
      all.push_back(points_line(curve.path, curve.column));
    most = std::max(most, largest_x(all));
    charts(CompareView::curve)[i]->set_lines(std::move(all));
    charts(CompareView::curve)[i]->set_levels(slo_levels(slo_, kShown[i]));
  }
  by_throughput_.set_data({0, most * 1.05});
}

void CompareCharts::fill_distribution() {
  for (size_t i = 0; i < charts(CompareView::distribution).size(); ++i) {
    const SweepMetric metric = kShown[i];
    ChartLink& link = i == 0 ? by_ttft_ : by_tpot_;
    std::vector<ChartLine> all;
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
    link.set_x(qs(views::label_of(metric)), Quantity::seconds);
    link.set_data({0, largest_x(all) * 1.02});
    charts(CompareView::distribution)[i]->set_lines(std::move(all));
    charts(CompareView::distribution)[i]->set_limits(slo_levels(slo_, metric));
  }
}

void CompareCharts::fill_heat() {
  const auto metric = static_cast<SweepMetric>(std::max(0, metric_->currentIndex()));
  std::vector<HeatMapView::Grid> grids;
  for (size_t c = 0; c < runs_.size(); ++c)
    if (runs_[c].sweep) grids.push_back({name(c), compare::heat_map(runs_, c, metric)});
  heat_->show_grids(std::move(grids), metric);
}

void CompareCharts::fill_cost() {
  const views::LoadAxis axis = compare::load_axis(runs_, input_len());
  set_axis(by_cost_load_, tr("rate"), ticks_of(axis));
  charts(CompareView::cost)[0]->set_lines(
      lines(compare::lines_by_load(runs_, input_len(), axis, SweepMetric::cost), SweepMetric::cost));
  std::vector<double> once;
  for (const QString& part : once_->text().split(u',', Qt::SkipEmptyParts)) once.push_back(part.trimmed().toDouble());
  const auto costs = compare::serving_costs(runs_, demand_->text().toDouble(), once);
  constexpr double kMonth = 720;
  double most = kMonth / 10;
  QStringList texts;
  std::vector<LevelLine> limits;
  for (size_t i = 1; i < costs.size(); ++i)
    if (const auto hours = compare::break_even(costs[0], costs[i])) {
      most = std::max(most, *hours * 1.6);
      texts << tr("%1 and %2 cost the same after %3 h")
                   .arg(name(costs[0].column), name(costs[i].column))
                   .arg(*hours, 0, 'f', *hours < 10 ? 1 : 0);
      limits.push_back({tr("break-even"), *hours, theme().series(static_cast<int>(costs[i].column)), Origin::requested,
                        tr("%1 h").arg(*hours, 0, 'f', 0)});
    }
  std::vector<ChartLine> all;
  for (const auto& cost : costs) {
    const std::vector<views::Point> path{{0, cost.at(0)}, {most, cost.at(most)}};
    all.push_back(points_line(path, cost.column));
    if (cost.servers > 1) all.back().name += tr(", %1 servers").arg(cost.servers);
  }
  by_hours_.set_x(tr("hours"), Quantity::plain);
  by_hours_.set_data({0, most});
  charts(CompareView::cost)[1]->set_lines(std::move(all));
  charts(CompareView::cost)[1]->set_limits(std::move(limits));
  break_even_->setText(texts.isEmpty() && costs.size() > 1 ? tr("No break-even: one run is always cheaper")
                                                           : texts.join(u"; "_s));
}

void CompareCharts::fill_loss() {
  static constexpr const char* kMetrics[] = {"train/loss", "eval/loss"};
  double most = 1;
  for (size_t i = 0; i < std::size(kMetrics); ++i) {
    std::vector<ChartLine> all;
    for (size_t c = 0; c < runs_.size(); ++c) {
      const views::MetricSeries* metric = runs_[c].training ? runs_[c].training->metric(kMetrics[i]) : nullptr;
      if (!metric || metric->raw.empty()) continue;
      const int group = static_cast<int>(c);
      ChartLine line{.name = name(c),
                     .color = theme().series(group),
                     .raw = std::make_shared<views::Series>(metric->raw),
                     .origin = origin_of(runs_[c].provenance),
                     .marks = metric->raw.size() < kMostMarks ? marks_of(group) : Marks::none,
                     .group = group};
      if (i == 0) line.smooth = std::make_shared<views::Series>(metric->smooth.series());
      most = std::max(most, metric->raw.back().x);
      all.push_back(std::move(line));
    }
    charts(CompareView::loss)[i]->set_lines(std::move(all));
  }
  std::vector<ChartLine> apart;
  for (const auto& curve : compare::loss_differences(runs_)) {
    apart.push_back(points_line(curve.path, curve.column));
    if (curve.path.size() >= kMostMarks) apart.back().marks = Marks::none;
  }
  charts(CompareView::loss)[std::size(kMetrics)]->set_lines(std::move(apart));
  by_step_.set_x(tr("step"), Quantity::count);
  by_step_.set_data({0, most});
}

}  // namespace mw::ui
