// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_charts.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QStackedWidget>
#include <QTabBar>
#include <QTableView>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/compare/parallel_runs.h"
#include "ui/charts/parallel_chart.h"
#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/why_view.h"
#include "ui/run_views/playhead_bar.h"
#include "ui/run_views/run_lines.h"
#include "ui/run_views/sweep_lines.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

using compare::ComparedKind;
using views::SweepMetric;
constexpr const char* kChosen = "chosen";  // by the user
constexpr size_t kMostMarks = 40;          // per line; more would overlap
constexpr SweepMetric kShown[] = {SweepMetric::ttft, SweepMetric::tpot, SweepMetric::output_throughput};

enum Control { prompt_length = 1, request_load = 2, shown_metric = 4 };
struct ChartSpec {
  const char *title, *unit, *empty;
  Quantity quantity = Quantity::plain;
  Scale scale = Scale::linear;
  int link = 0;  // charts of one view with different x axes
  bool from_zero = false;
};
struct ViewSpec {
  const char* name;
  ComparedKind kind;
  int controls;
  std::vector<ChartSpec> charts;
};

constexpr const char* kNoMetric = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "These runs do not record this metric");
constexpr const char* kNoRequests =
    QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "No run records the requests of this cell");
constexpr const char* kNoPrice = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "The prices of these runs are unknown");
constexpr const char* kNoLoss = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "No loss is recorded");

ChartSpec latency(const char* title, const char* unit) {
  return {title, unit, kNoMetric, Quantity::seconds, Scale::logarithmic};
}

ChartSpec share(const char* title, const char* unit, const char* empty, int link = 0) {
  return {title, unit, empty, Quantity::plain, Scale::linear, link, true};
}

// By CompareView.
const std::array<ViewSpec, kCompareViews>& specs() {
  using enum ComparedKind;
  constexpr const char *kSpread = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "median to p99"),
                       *kMedian = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "median"),
                       *kShare = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "% of requests at or below"),
                       *kNats = QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "nats/token");
  constexpr ChartSpec kThroughput{QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Throughput"),
                                  QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "output tokens/s"), kNoMetric};
  constexpr ChartSpec kCost{QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Cost of tokens"),
                            QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "USD per million tokens"), kNoPrice,
                            Quantity::plain, Scale::logarithmic};
  constexpr ChartSpec kApart{
      QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Difference"),
      QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "% of the baseline's loss"),
      QT_TRANSLATE_NOOP("mw::ui::CompareCharts",
                        "The baseline shares no step with another run, or all losses are identical"),
      Quantity::plain, Scale::logarithmic};
  static const std::array<ViewSpec, kCompareViews> kSpecs{{
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Rate"),
       serving,
       prompt_length,
       {latency("TTFT", kSpread), latency("TPOT", kSpread), kThroughput}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Length"),
       serving,
       request_load,
       {latency("TTFT", kSpread), latency("TPOT", kSpread), kThroughput}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Pareto"),
       serving,
       prompt_length,
       {latency("TTFT", kMedian), latency("TPOT", kMedian), kCost}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Distribution"),
       serving,
       prompt_length | request_load,
       {share("TTFT", kShare, kNoRequests), share("TPOT", kShare, kNoRequests, 1)}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Heat map"), serving, shown_metric, {}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Cost"),
       serving,
       prompt_length,
       {kCost, share(QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Cost of serving"), "USD", kNoPrice, 1)}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Why"), serving, prompt_length | request_load, {}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Replay"), serving, 0, {}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Loss"),
       training,
       0,
       {{QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Training loss"), kNats, kNoLoss},
        {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Eval loss"), kNats, kNoLoss},
        kApart}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Answers and Speed"),
       training,
       0,
       {share(QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Scored answers"),
              QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "% right"),
              QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "These runs score no answers")),
        share(QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Speed"),
              QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "tokens/s"), kNoMetric)}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Settings"), training, 0, {}},
      {QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Pareto"),
       sizing,
       0,
       {latency(QT_TRANSLATE_NOOP("mw::ui::CompareCharts", "Time of a batch"), kMedian), kCost}},
  }};
  return kSpecs;
}

const ViewSpec& spec_of(CompareView view) {
  return specs()[static_cast<size_t>(view)];
}

// Keeps the user's choice if it is still available, otherwise selects the default.
void offer(QComboBox& box, const QStringList& texts, const QString& usual) {
  const QString before = box.property(kChosen).toBool() ? box.currentText() : QString();
  const QSignalBlocker quiet(box);
  box.clear();
  box.addItems(texts);
  const int kept = static_cast<int>(texts.indexOf(before));
  box.setCurrentIndex(kept >= 0 ? kept : std::max(0, static_cast<int>(texts.indexOf(usual))));
}

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

// "58.1 (+12.3)"
QString figure_text(double value, std::optional<double> delta, int decimals) {
  if (!std::isfinite(value)) return {};
  const QString text = QString::number(value, 'f', decimals);
  if (!delta || !std::isfinite(*delta)) return text;
  return u"%1 (%2%3)"_s.arg(text, *delta < 0 ? u"\u2212"_s : u"+"_s, QString::number(std::abs(*delta), 'f', decimals));
}

TableModel<compare::ReplayRow>::Columns replay_columns() {
  using Row = compare::ReplayRow;
  using Figures = compare::ReplayFigures;
  const auto figure = [](const QString& title, double Figures::*member, int decimals) {
    return number_column<Row>(
        title,
        [=](const Row& r) {
          return figure_text(r.figures.*member, r.delta ? std::optional((*r.delta).*member) : std::nullopt, decimals);
        },
        [=](const Row& r) { return r.figures.*member; });
  };
  return {{.title = CompareCharts::tr("Requests"), .text = [](const Row& r) { return qs(r.point); }},
          {.title = CompareCharts::tr("Cause"),
           .tooltip = CompareCharts::tr("One factor after another is changed, and the recorded requests are simulated"),
           .text = [](const Row& r) { return qs(r.name); }},
          figure(CompareCharts::tr("TTFT p99 (ms)"), &Figures::ttft_p99_ms, 1),
          figure(CompareCharts::tr("TPOT p99 (ms)"), &Figures::tpot_p99_ms, 2),
          figure(CompareCharts::tr("E2E p99 (ms)"), &Figures::e2el_p99_ms, 0),
          figure(CompareCharts::tr("Cost (USD)"), &Figures::usd, 4),
          figure(CompareCharts::tr("USD/1M tokens"), &Figures::usd_per_million_output_tokens, 2),
          {.title = CompareCharts::tr("Change"), .text = [](const Row& r) { return qs(r.text); }}};
}

using Snapshot = compare::RunSnapshot;
QString optional_text(const std::optional<double>& value, int digits) {
  return value ? QString::number(*value, 'g', digits) : QString();
}

TableModel<Snapshot>::Columns snapshot_columns(const QStringList& names) {
  const auto number = [](const QString& title, std::optional<double> Snapshot::*member, int digits) {
    return number_column<Snapshot>(title, [=](const Snapshot& s) { return optional_text(s.*member, digits); });
  };
  const auto bytes = [](const QString& title, std::optional<Bytes> Snapshot::*member) {
    return number_column<Snapshot>(
        title, [=](const Snapshot& s) { return s.*member ? qs(to_text(*(s.*member))) : QString(); });
  };
  return {
      {.title = CompareCharts::tr("Run"),
       .text = [&names](const Snapshot& s) { return names.value(static_cast<qsizetype>(s.column)); }},
      number_column<Snapshot>(CompareCharts::tr("Step"),
                              [](const Snapshot& s) {
                                return s.ended ? CompareCharts::tr("%1 (last)").arg(s.step) : QString::number(s.step);
                              }),
      number_column<Snapshot>(CompareCharts::tr("Time"),
                              [](const Snapshot& s) { return s.time_s ? qs(to_text(Seconds(*s.time_s))) : QString(); }),
      number(CompareCharts::tr("Train loss"), &Snapshot::loss, 5),
      number(CompareCharts::tr("Eval loss"), &Snapshot::eval_loss, 5),
      number(CompareCharts::tr("Rate"), &Snapshot::learning_rate, 3),
      number(CompareCharts::tr("Norm"), &Snapshot::gradient_norm, 3),
      number(CompareCharts::tr("Tokens/s"), &Snapshot::tokens_per_second, 4),
      bytes(CompareCharts::tr("Memory"), &Snapshot::memory),
      bytes(CompareCharts::tr("Moved"), &Snapshot::moved)};
}

}  // namespace

CompareCharts::CompareCharts(const std::vector<compare::ComparedRun>& runs, plan::LoadContext context, QWidget* parent)
    : QWidget(parent),
      runs_(runs),
      context_(std::move(context)),
      tabs_(new QTabBar(this)),
      replay_rows_(replay_columns()),
      snapshots_(snapshot_columns(names_)) {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  auto* top = flush_layout<QHBoxLayout>(nullptr, 5);
  tabs_->setAccessibleName(tr("What the charts show"));
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  top->addWidget(tabs_, 1);
  length_label_ = add_labelled(*top, tr("Prompt"), length_ = new QComboBox);
  load_label_ = add_labelled(*top, tr("Load"), load_ = new QComboBox);
  metric_label_ = add_labelled(*top, tr("Metric"), metric_ = new QComboBox);
  for (const SweepMetric m : all_values<SweepMetric>()) metric_->addItem(qs(views::label_of(m)));
  column->addLayout(top);
  stack_ = new QStackedWidget(this);
  for (size_t v = 0; v < kCompareViews; ++v) {
    tabs_->addTab(tr(specs()[v].name));
    stack_->addWidget(page(static_cast<CompareView>(v)));
  }
  column->addWidget(stack_, 1);
  column->addWidget(playhead_page_ = playhead_page());
  connect(tabs_, &QTabBar::currentChanged, this, &CompareCharts::fill_shown);
  connect(tabs_, &QTabBar::tabBarClicked, this, [this] { chosen_ = true; });
  for (QComboBox* box : {length_, load_, metric_, &why_->other()})
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (QComboBox* box : {length_, load_, metric_}) {
    connect(box, &QComboBox::currentIndexChanged, this, &CompareCharts::fill_shown);
    connect(box, &QComboBox::activated, this, [box] { box->setProperty(kChosen, true); });
  }
  for (QLineEdit* line : {demand_, once_}) connect(line, &QLineEdit::textChanged, this, &CompareCharts::fill_shown);
  refresh();
}

QWidget* CompareCharts::page(CompareView view) {
  if (view == CompareView::heat) return heat_page();
  if (view == CompareView::why) return why_ = new WhyView(runs_, context_, this);
  if (view == CompareView::replayed) return replay_page();
  if (view == CompareView::settings) {
    parallel_ = new ParallelChart(this);
    connect(parallel_, &ParallelChart::run_hovered, this, &CompareCharts::hovered);
    return parallel_;
  }
  auto* row = make_splitter(Qt::Horizontal, this);
  row->setChildrenCollapsible(false);
  for (const ChartSpec& spec : spec_of(view).charts) {
    auto* chart = new Chart({.title = tr(spec.title),
                             .unit = tr(spec.unit),
                             .quantity = spec.quantity,
                             .empty = tr(spec.empty),
                             .from_zero = spec.from_zero},
                            link(view, static_cast<size_t>(spec.link)), row);
    chart->set_scale(spec.scale);
    connect(chart, &Chart::group_hovered, this, &CompareCharts::hovered);
    charts_[static_cast<size_t>(view)].push_back(chart);
  }
  if (view != CompareView::cost) return row;
  auto* whole = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(whole, 3);
  column->addWidget(cost_controls());
  column->addWidget(row, 1);
  return whole;
}

QWidget* CompareCharts::heat_page() {
  heat_view_ = make_table(heat_, tr("Heat map of load and prompt length"), this);
  heat_view_->setSelectionBehavior(QAbstractItemView::SelectItems);
  heat_view_->verticalHeader()->setDefaultSectionSize(2 * fontMetrics().height() + 6);  // a value above its change
  freeze_columns(*heat_view_, HeatTable::kNames);
  connect(heat_view_, &QTableView::clicked, this, [this](const QModelIndex& at) {
    if (heat_.load_at(at.column()).isEmpty()) return;
    choose_cell(heat_.row(at.row()).input_len, heat_.load_at(at.column()));
    show_view(CompareView::distribution);
  });
  auto* page = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(page, 2);
  heat_axes_ = muted_label(QString(), page);
  heat_axes_->setAlignment(Qt::AlignCenter);
  column->addWidget(heat_axes_);
  column->addWidget(heat_view_, 1);
  return page;
}

QWidget* CompareCharts::replay_page() {
  QTableView* table = make_table(replay_rows_, tr("Causes of the difference that a replay makes"), this);
  table->horizontalHeader()->setStretchLastSection(true);
  table->setColumnWidth(0, 140);
  for (int c = 1; c + 1 < replay_rows_.columnCount(); ++c) table->setColumnWidth(c, 128);
  freeze_columns(*table, 2);
  copy_on_ctrl_c(*table);
  return table;
}

// The state of every run at the playhead that their charts share.
QWidget* CompareCharts::playhead_page() {
  auto* whole = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(whole, 3);
  auto* row = flush_layout<QHBoxLayout>(nullptr, 5);
  playhead_ = new PlayheadBar(playhead(), whole, PlayheadBar::Controls::playhead);
  row->addWidget(playhead_, 1);
  add_labelled(*row, tr("Over"), axis_ = new QComboBox);
  axis_->addItems({tr("Steps"), tr("Time")});
  axis_->setToolTip(tr("Whether the charts and the playhead compare equal steps or equal times since the start"));
  column->addLayout(row);
  QTableView* table = make_table(snapshots_, tr("State of the runs at the playhead"), whole);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  constexpr int kHeight = 96;  // header and three runs
  table->setFixedHeight(kHeight);
  copy_on_ctrl_c(*table);
  column->addWidget(table);
  connect(axis_, &QComboBox::currentIndexChanged, this, [this] {
    playhead().reset();
    fill_shown();
  });
  connect(&playhead(), &ChartLink::cursor_changed, this, &CompareCharts::show_snapshots);
  return whole;
}

bool CompareCharts::by_time() const {
  return axis_->currentIndex() == 1;
}

void CompareCharts::show_snapshots() {
  const std::optional<double> at = playhead().reading();
  snapshots_.set_rows(
      compare::snapshots_at(runs_, by_time() ? views::Playhead{std::nullopt, at} : views::Playhead{at, std::nullopt}));
}

void CompareCharts::fill_replay() {
  std::vector<compare::ReplayRow> rows;
  for (const auto& run : runs_) try {
      for (compare::ReplayRow& row : compare::replay_rows(run.explained)) rows.push_back(std::move(row));
    } catch (const Error&) {  // of a newer program
    }
  replay_rows_.set_rows(std::move(rows));
}

QWidget* CompareCharts::cost_controls() {
  auto* bar = new QWidget(this);
  auto* row = make_layout<QHBoxLayout>(bar, {2, 0, 2, 0});
  const auto line = [&](const QString& text, const QString& hint, const QString& tip) {
    auto* edit = new QLineEdit;
    edit->setPlaceholderText(hint);
    edit->setToolTip(tip);
    edit->setMaximumWidth(110);
    add_labelled(*row, text, edit);
    return edit;
  };
  demand_ = line(tr("Demand (tokens/s)"), tr("one server"),
                 tr("Output tokens per second to serve, which determines the number of servers"));
  once_ = line(tr("Paid once (USD)"), tr("0, 0"),
               tr("Costs before serving begins, such as training and porting: one number per run, in order"));
  break_even_ = new ElidedLabel(Qt::ElideRight, bar);
  break_even_->setAccessibleName(tr("Break-even"));
  row->addWidget(break_even_, 1);
  return bar;
}

CompareView CompareCharts::view() const {
  return static_cast<CompareView>(tabs_->currentIndex());
}

std::vector<CompareView> CompareCharts::views() const {
  const ComparedKind kind = runs_.empty() ? ComparedKind::serving : compare::kind_of(runs_.front());
  const bool explained = std::any_of(runs_.begin(), runs_.end(), [](const auto& r) { return !r.explained.is_null(); });
  std::vector<CompareView> out;
  for (size_t v = 0; v < kCompareViews; ++v)
    if (specs()[v].kind == kind && (static_cast<CompareView>(v) != CompareView::replayed || explained))
      out.push_back(static_cast<CompareView>(v));
  return out;
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
  return tr("%1 (%2)").arg(names_[static_cast<qsizetype>(column)], origin_text(runs_[column].provenance));
}

void CompareCharts::set_slo(const options::Slo& slo) {
  slo_ = slo;
  fill_shown();
}

void CompareCharts::set_emphasis(int column) {
  for (const auto& view : charts_)
    for (Chart* chart : view) chart->set_emphasis(column);
  parallel_->set_emphasis(column);
}

void CompareCharts::fill_choices() {
  QStringList lens, loads;
  for (const int len : compare::input_lens(runs_)) lens << QString::number(len);
  for (const auto& text : compare::loads_of(runs_)) loads << qs(text);
  offer(*length_, lens, QString::number(compare::usual_input_len(runs_)));
  offer(*load_, loads, qs(compare::usual_load(runs_)));
}

// Shows the first view with a line of several points, unless the user has chosen one that the runs have, too.
void CompareCharts::refresh() {
  names_ = short_names(runs_);
  fill_choices();
  const auto offered = views();
  const auto is_offered = [&](CompareView v) { return std::find(offered.begin(), offered.end(), v) != offered.end(); };
  CompareView best = offered.front();
  if (chosen_ && is_offered(view())) {
    best = view();
  } else {
    for (const CompareView v : offered)
      if (v != CompareView::why) fill(v);  // which simulates
    const auto with_curves = std::find_if(offered.begin(), offered.end(), [this](CompareView v) { return curves(v); });
    if (with_curves != offered.end()) best = *with_curves;
  }
  for (size_t v = 0; v < kCompareViews; ++v)
    tabs_->setTabVisible(static_cast<int>(v), is_offered(static_cast<CompareView>(v)));
  tabs_->setCurrentIndex(static_cast<int>(best));
  fill_shown();
}

bool CompareCharts::curves(CompareView view) const {
  if (view == CompareView::cost) return false;  // its lines are drawn through single points
  const auto& all = charts(view);
  return std::any_of(all.begin(), all.end(), [](const Chart* chart) {
    const auto& lines = chart->lines();
    return std::any_of(lines.begin(), lines.end(),
                       [](const ChartLine& l) { return l.group >= 0 && l.raw->size() > 1; });
  });
}

bool CompareCharts::has_curves() const {
  const auto offered = views();
  return std::any_of(offered.begin(), offered.end(), [this](CompareView v) { return curves(v); });
}

void CompareCharts::fill_shown() {
  const int controls = spec_of(view()).controls;
  for (const auto& [label, control] : {std::pair{length_label_, prompt_length}, std::pair{load_label_, request_load},
                                       std::pair{metric_label_, shown_metric}}) {
    label->setVisible((controls & control) != 0);
    label->buddy()->setVisible((controls & control) != 0);
  }
  stack_->setCurrentIndex(tabs_->currentIndex());
  playhead_page_->setVisible(spec_of(view()).kind == ComparedKind::training && view() != CompareView::settings);
  fill(view());
}

void CompareCharts::fill(CompareView v) {
  switch (v) {
    case CompareView::load:
      return fill_load();
    case CompareView::length:
      return fill_length();
    case CompareView::pareto: {
      std::vector<std::vector<compare::ComparedCurve>> curves;
      for (const SweepMetric metric : {SweepMetric::ttft, SweepMetric::tpot, SweepMetric::cost})
        curves.push_back(compare::latency_against_throughput(runs_, input_len(), metric));
      return fill_pareto(v, curves);
    }
    case CompareView::distribution:
      return fill_distribution();
    case CompareView::heat:
      heat_.show(runs_, names_, static_cast<SweepMetric>(std::max(0, metric_->currentIndex())));
      heat_axes_->setText(
          tr("Columns: load (requests/s, or at once) \u00B7 rows: prompt length (tokens) \u00B7 cells: %1")
              .arg(metric_->currentText()));
      return fit_heat_columns();
    case CompareView::cost:
      return fill_cost();
    case CompareView::why:
      return why_->show_cell(names_, input_len(), load());
    case CompareView::replayed:
      return fill_replay();
    case CompareView::loss:
      return fill_training(v, {"train/loss", "eval/loss"});
    case CompareView::answers:
      return fill_training(v, {"", "train/tokens_per_second"});
    case CompareView::settings:
      return parallel_->show_runs(views::parallel_axes(compare::parallel_runs(runs_)), names_);
    case CompareView::sizes:
      return fill_pareto(v, {compare::size_trade_off(runs_, compare::SizeCost::seconds),
                             compare::size_trade_off(runs_, compare::SizeCost::usd)});
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
  set_axis(link(CompareView::load), tr("rate (requests/s)"), ticks_of(axis));
  for (size_t i = 0; i < std::size(kShown); ++i) {
    Chart* chart = this->chart(CompareView::load, i);
    chart->set_lines(lines(compare::lines_by_load(runs_, input_len(), axis, kShown[i]), kShown[i]));
    chart->set_levels(slo_levels(slo_, kShown[i]));
  }
}

// The loads share the width; they scroll beside the names where it is too little for a value with its change.
void CompareCharts::fit_heat_columns() {
  constexpr int kNarrowest = 58, kWidestName = 150;
  QHeaderView& header = *heat_view_->horizontalHeader();
  int least = kNarrowest;
  for (int c = HeatTable::kNames; c < heat_.columnCount(); ++c) least = std::max(least, header.sectionSizeHint(c));
  header.setMinimumSectionSize(least);
  for (int c = HeatTable::kNames; c < heat_.columnCount(); ++c) header.setSectionResizeMode(c, QHeaderView::Stretch);
  for (int c = 0; c < HeatTable::kNames; ++c) {
    header.setSectionResizeMode(c, QHeaderView::Interactive);
    heat_view_->resizeColumnToContents(c);
    header.resizeSection(c, std::min(header.sectionSize(c), kWidestName));
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
  set_axis(link(CompareView::length), tr("prompt tokens"), length_stops(compare::input_lens(runs_)));
  for (size_t i = 0; i < std::size(kShown); ++i) {
    Chart* chart = this->chart(CompareView::length, i);
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

// The trade-off of every run by load, and the front of all of them.
void CompareCharts::fill_pareto(CompareView view, const std::vector<std::vector<compare::ComparedCurve>>& curves) {
  double most = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    std::vector<ChartLine> all;
    for (const auto& curve : curves[i]) all.push_back(points_line(curve.path, curve.column));
    most = std::max(most, largest_x(all));
    if (const auto front = compare::pareto_front(curves[i]); front.size() > 1) {
      auto series = std::make_shared<views::Series>();
      for (const auto& p : front) series->append(p.x, p.y);
      all.push_back(
          {.name = tr("Pareto front"), .color = theme().text, .raw = std::move(series), .origin = Origin::requested});
    }
    chart(view, i)->set_lines(std::move(all));
    if (view == CompareView::pareto && i < 2) chart(view, i)->set_levels(slo_levels(slo_, kShown[i]));
  }
  link(view).set_x(view == CompareView::sizes ? tr("tokens/s") : tr("output tokens/s"), Quantity::plain);
  link(view).set_data({0, std::max(1.0, most * 1.05)});
}

void CompareCharts::fill_distribution() {
  for (size_t i = 0; i < charts(CompareView::distribution).size(); ++i) {
    const SweepMetric metric = kShown[i];
    ChartLink& x_axis = link(CompareView::distribution, i);
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
    x_axis.set_x(qs(views::label_of(metric)), Quantity::seconds);
    x_axis.set_data({0, largest_x(all) * 1.02});
    charts(CompareView::distribution)[i]->set_lines(std::move(all));
    charts(CompareView::distribution)[i]->set_limits(slo_levels(slo_, metric));
  }
}

void CompareCharts::fill_cost() {
  const views::LoadAxis axis = compare::load_axis(runs_, input_len());
  set_axis(link(CompareView::cost), tr("rate (requests/s)"), ticks_of(axis));
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
    if (QString& name = all.back().name; cost.servers > 1)
      name = tr("%1, %n server(s)", nullptr, plural_count(cost.servers)).arg(name);
  }
  link(CompareView::cost, 1).set_x(tr("hours"), Quantity::plain);
  link(CompareView::cost, 1).set_data({0, most});
  charts(CompareView::cost)[1]->set_lines(std::move(all));
  charts(CompareView::cost)[1]->set_limits(std::move(limits));
  break_even_->setText(texts.isEmpty() && costs.size() > 1 ? tr("No break-even: one run is always cheaper")
                                                           : texts.join(u"; "_s));
}

// `metrics`: by chart; empty: the scored answers. The chart after them has the differences of the losses.
void CompareCharts::fill_training(CompareView view, const std::vector<std::string>& metrics) {
  double most = 1;
  for (size_t i = 0; i < metrics.size(); ++i) {
    std::vector<ChartLine> all;
    for (size_t c = 0; c < runs_.size(); ++c) {
      if (!runs_[c].training) continue;
      ChartLine line = metrics[i].empty() ? answers_line(runs_[c].training->answers()) : ChartLine();
      if (const auto* metric = runs_[c].training->metric(metrics[i])) {
        line.raw = std::make_shared<views::Series>(metric->raw);
        if (metrics[i].starts_with("train/")) line.smooth = std::make_shared<views::Series>(metric->smooth.series());
      }
      if (by_time())
        for (auto* series : {&line.raw, &line.smooth})
          if (*series) *series = std::make_shared<views::Series>(compare::metric_by_time(*runs_[c].training, **series));
      if (!line.raw || line.raw->empty()) continue;
      line.group = static_cast<int>(c);
      line.name = metrics[i].empty() ? tr("%1: %2").arg(name(c), line.name) : name(c);
      line.color = theme().series(line.group);
      line.origin = origin_of(runs_[c].provenance);
      line.marks = line.raw->size() < kMostMarks ? marks_of(line.group) : Marks::none;
      most = std::max(most, line.raw->back().x);
      all.push_back(std::move(line));
    }
    chart(view, i)->set_lines(std::move(all));
  }
  link(view).set_x(by_time() ? tr("time") : tr("step"), by_time() ? Quantity::seconds : Quantity::count);
  link(view).set_data({0, most});
  playhead_->set_data({0, most});
  show_snapshots();
  if (view != CompareView::loss) return;
  std::vector<ChartLine> apart;
  for (const auto& curve : by_time() ? std::vector<compare::ComparedCurve>() : compare::loss_differences(runs_)) {
    apart.push_back(points_line(curve.path, curve.column));
    if (curve.path.size() >= kMostMarks) apart.back().marks = Marks::none;
  }
  chart(view, metrics.size())->set_lines(std::move(apart));
}

}  // namespace mw::ui

#include "moc_compare_charts.cpp"
