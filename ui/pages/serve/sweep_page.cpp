// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_page.h"

#include <algorithm>
#include <cmath>

#include "ui/run_views/run_drag.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {

constexpr int kMostColumnWidth = 260;  // pixels

// The requested rates, so that the axis exists before the first point.
void add_rates(views::LoadAxis& axis, const experiment::Experiment& record) {
  const Json rates = record.value("sweep.request_rates"), arrival = record.value("sweep.arrival");
  if (!rates.is_array() || arrival == "closed" || arrival == "burst") return;
  for (const Json& r : rates) {
    if (r.is_number() && r.get<double>() > 0) axis.add_rate(r.get<double>());
    if (r.is_string() && r == "inf") axis.add_rate(INFINITY);
  }
}

std::vector<SettingsRow::Setting> sweep_settings() {
  return {{"sweep.backend", SweepPage::tr("Backend"), 4},
          {"sweep.url", SweepPage::tr("Server"), 6},
          {"sweep.request_rates", SweepPage::tr("Rates (requests/s)"), 6},
          {"sweep.input_lens", SweepPage::tr("Prompts (tokens)"), 6},
          {"sweep.output_len", SweepPage::tr("Output (tokens)"), 6},
          {"sweep.num_prompts", SweepPage::tr("Requests"), 4},
          {"sweep.arrival", SweepPage::tr("Arrival"), 5},
          {"sweep.slo_ttft_ms", SweepPage::tr("SLO TTFT (ms)"), 5},
          {"sweep.slo_tpot_ms", SweepPage::tr("TPOT (ms)"), 4},
          {"sweep.slo_e2e_ms", SweepPage::tr("E2E (ms)"), 4}};
}

std::shared_ptr<const views::Series> over_time(const std::vector<formats::LoadSample>& samples,
                                               double (*value)(const formats::LoadSample&)) {
  auto series = std::make_shared<views::Series>();
  for (const auto& s : samples) series->append(s.time_s, value(s));
  return series;
}

}  // namespace

SweepPage::SweepPage(Document& document, RunController& runs, QWidget* parent)
    : RunTab(runs, RunKind::sweep, parent),
      reader_(runs.context()),
      form_(new SettingsRow(document, sweep_settings(), this)) {
  link_.set_x(tr("rate (requests/s)"), AxisQuantity::plain);
  by_time_.set_x(tr("time"), AxisQuantity::seconds);
  build({.empty_title = tr("No sweep yet"),
         .empty_text =
             tr("Run Sweep measures one point per rate and prompt length above, with latencies, throughput and\n"
                "all requests. The engine on this machine is measured, other targets are simulated step by step,\n"
                "and a server over HTTP is measured with the same traffic. Complete points are kept if you stop\n"
                "the sweep."),
         .show_settings = tr("Show Sweep Settings"),
         .settings_tip = tr("Show all settings of the sweep and the server in the form"),
         .copy_tip = tr("Copy all points as CSV with vLLM's names and units"),
         .start = tr("Run Sweep"),
         .start_tip = tr("Sweep the rates and prompt lengths in the form as a new run (Ctrl+Shift+F5)"),
         .stop_tip = tr("Stop the sweep and keep the finished points (Shift+F5)"),
         .setting = "sweep.arrival",
         .action = u"run.sweep"_s},
        form_);
  build_bar();
  build_charts();
  connect(&link_, &ChartLink::cursor_changed, this, &SweepPage::select_at_playhead);
  adopt();
}

void SweepPage::reset() {
  selected_.reset();
  chosen_ = false;
  by_time_.reset();
  show_view(std::make_shared<views::SweepView>());
  reader_.show(run_);
}

void SweepPage::restyle() {
  if (!view_) return;
  redraw();
  redraw_point();
}

bool SweepPage::resumable() const {
  if (!run_ || run_->is_live || run_->id.empty()) return false;
  const RunState s = run_->view.state();
  return s == RunState::cancelled || s == RunState::failed;
}

void SweepPage::show_frame() {
  if (!isVisible()) return;
  if (const SweepViewPtr newest = reader_.drain()) show_view(newest);
  if (!show_changes()) return;
  reader_.grow();
  resume_->setVisible(resumable());
  resume_->setEnabled(!runs_.live());
  compare_->setEnabled(run_ && !run_->id.empty());
}

void SweepPage::show_view(SweepViewPtr view) {
  reader_.discard(std::exchange(view_, std::move(view)));
  redraw();
}

void SweepPage::redraw() {
  axis_ = {};
  if (run_) add_rates(axis_, run_->record);
  for (const auto& p : view_->set.points) axis_.add(p);
  const auto stops = ticks_of(axis_);
  link_.set_stops(stops);
  link_.set_data(range_of(stops));
  model_.show(view_);
  fit_columns();
  const QString origin = origin_text(view_->set.provenance);
  for (const auto& [chart, metric] : {std::pair{ttft_, views::SweepMetric::ttft}, {tpot_, views::SweepMetric::tpot}}) {
    chart->set_unit(tr("median to p99, %1").arg(origin));
    chart->set_lines(sweep_lines(*view_, axis_, metric));
    chart->set_levels(slo_levels(view_->slo, metric));
  }
  throughput_->set_unit(tr("output tokens/s, %1").arg(origin));
  auto lines = sweep_lines(*view_, axis_, views::SweepMetric::output_throughput);
  if (!lines.empty()) lines.insert(lines.begin(), offered_line(*view_, axis_));
  throughput_->set_lines(std::move(lines));
  replay_->setEnabled(std::any_of(view_->set.points.begin(), view_->set.points.end(),
                                  [](const auto& p) { return !p.requests.empty(); }));
  const size_t points = view_->set.points.size();
  if (points == 0)
    select(std::nullopt);
  else if (!selected_ || !chosen_ || *selected_ >= points)
    select(points - 1);
  else
    show_capacity();
  show_verdict();
}

size_t SweepPage::line_of_point(size_t point) const {
  for (size_t i = 0; i < view_->lines.size(); ++i)
    for (const size_t p : view_->lines[i].points)
      if (p == point) return i;
  return 0;
}

void SweepPage::select(std::optional<size_t> point) {
  selected_ = point;
  selecting_ = true;
  if (point) {
    if (chosen_) link_.set_playhead(axis_.place(view_->set.points[*point]));
    table_->selectRow(static_cast<int>(*point));
  } else {
    table_->clearSelection();
  }
  selecting_ = false;
  by_time_.reset();
  by_time_.set_x(tr("time"), AxisQuantity::seconds);
  redraw_point();
}

// Selects the point of a load and the current input length after a click or an arrow key.
void SweepPage::select_at_playhead() {
  const auto head = link_.playhead();
  if (selecting_ || !head || !view_ || view_->lines.empty()) return;
  const auto at = [&](const views::SweepLine& line) -> std::optional<size_t> {
    for (const size_t i : line.points)
      if (std::abs(axis_.place(view_->set.points[i]) - *head) < 1e-9) return i;
    return std::nullopt;
  };
  std::optional<size_t> found = at(view_->lines[selected_ ? line_of_point(*selected_) : 0]);
  for (size_t i = 0; i < view_->lines.size() && !found; ++i) found = at(view_->lines[i]);
  if (!found || found == selected_) return;
  chosen_ = true;
  select(found);
}

void SweepPage::redraw_point() {
  const formats::BenchPoint* point = selected_ ? &view_->set.points[*selected_] : nullptr;
  timeline_->show_point(
      point, point ? tr("at %1, %n token(s)", nullptr, point->input_len).arg(qs(views::load_text(*point))) : QString());
  show_capacity();
  double end = point && std::isfinite(point->duration_s) ? point->duration_s : 0;
  if (point)
    for (const auto& r : point->requests) end = std::max(end, views::phases_of(r).end);
  by_time_.set_data({0, end > 0 ? end : 1});
  const LineOrigin origin = origin_of(view_->set.provenance);
  std::vector<ChartLine> flight, blocks;
  if (point && !point->timeline.empty()) {
    flight.push_back({.name = tr("running"),
                      .color = theme().series(0),
                      .raw = over_time(point->timeline, [](const auto& s) { return static_cast<double>(s.running); }),
                      .origin = origin});
    flight.push_back({.name = tr("waiting"),
                      .color = theme().series(1),
                      .raw = over_time(point->timeline, [](const auto& s) { return static_cast<double>(s.waiting); }),
                      .origin = origin});
    blocks.push_back({.name = tr("used"),
                      .color = theme().series(2),
                      .raw = over_time(point->timeline, [](const auto& s) { return s.kv_used * 100; }),
                      .origin = origin});
  }
  in_flight_->set_lines(std::move(flight));
  kv_->set_lines(std::move(blocks));
  show_verdict();
}

// Shows the capacity limits of the current input length.
void SweepPage::show_capacity() {
  throughput_->set_limits(selected_ ? capacity_limits(*view_, line_of_point(*selected_)) : std::vector<LevelLine>{});
}

// Emphasises one input length in all charts.
void SweepPage::emphasise(int group) {
  for (Chart* p : {ttft_, tpot_, throughput_}) p->set_emphasis(group);
}

QString SweepPage::verdict() const {
  QStringList parts;
  if (!view_) return {};
  for (const auto& line : view_->lines)
    if (const auto text = verdict_text(view_->set, line, view_->slo); !text.empty())
      parts << tr("%n token(s): %1", nullptr, line.input_len).arg(qs(text));
  return parts.join(u"\n"_s);
}

compare::ComparedRun SweepPage::compared() const {
  return {.id = run_->id,
          .name = run_->name,
          .provenance = view_->set.provenance,
          .experiment = run_->record,
          .sweep = *view_};
}

// The result of the selected length; the tooltip has all.
void SweepPage::show_verdict() {
  if (!view_) return;
  label_->setToolTip(verdict());
  QStringList parts;
  if (selected_ && !view_->lines.empty()) {
    const auto& line = view_->lines[line_of_point(*selected_)];
    const QString verdict = qs(verdict_text(view_->set, line, view_->slo));
    if (!verdict.isEmpty()) parts << tr("%n token(s): %1", nullptr, line.input_len).arg(verdict);
  }
  const auto found = std::count_if(view_->findings.begin(), view_->findings.end(),
                                   [](const auto& f) { return f.verdict != audit::Verdict::fine; });
  if (found > 0) parts << tr("audit findings: %1").arg(found);
  if (view_->ignored > 0) parts << tr("%n point(s) could not be read", nullptr, plural_count(view_->ignored));
  label_->setText(parts.join(u"  \u00B7  "_s));
}

// Shows the columns that fit, the most important first, or all of them. Widths only grow while points are added.
void SweepPage::fit_columns() {
  const QAbstractItemView& view = *table_;
  int sum = 0;
  for (int c = 0; c < model_.columnCount(); ++c) {
    const bool used = model_.is_column_used(c);
    const int wanted = std::max(view.sizeHintForColumn(c), table_->horizontalHeader()->sectionSizeHint(c)) + 6;
    int& width = column_widths_.try_emplace(c, 0).first->second;
    width = std::min(model_.rowCount() <= 1 ? wanted : std::max(wanted, width), kMostColumnWidth);
    if (used) sum += width;
    const bool hidden = !used || (!all_columns_->isChecked() && sum > table_->viewport()->width());
    table_->setColumnHidden(c, hidden);
    if (!hidden) table_->setColumnWidth(c, width);
  }
}

bool SweepPage::eventFilter(QObject* watched, QEvent* event) {
  if (table_ && watched == table_->viewport() && event->type() == QEvent::Resize) fit_columns();
  if (table_ && watched == table_->viewport() && event->type() == QEvent::Leave) {
    link_.set_cursor(std::nullopt);
    emphasise(-1);
  }
  return QWidget::eventFilter(watched, event);
}

void SweepPage::build_bar() {
  label_->setAccessibleName(tr("Saturation of the server"));
  content_->insertWidget(0, label_);  // on a line of its own
  bar_->insertStretch(0, 1);
  auto* compare = new DragButton(tr("Compare"));
  compare->set_run([this] { return run_ ? run_->id : store::RunId(); });
  compare->setToolTip(tr("Add this sweep to the Compare page; it can also be dragged there"));
  bar_->addWidget(compare_ = compare);
  replay_ = add_button(*bar_, tr("Replay\u2026"),
                       tr("Simulate these requests on another target, mesh, KV type or cache policy"));
  resume_ = add_button(*bar_, tr("Resume"), tr("Continue this sweep and keep its finished points"));
  all_columns_ = chip_button(tr("All Columns"), tr("Show every metric instead of those that fit"), this);
  bar_->addWidget(all_columns_);
  connect(all_columns_, &QToolButton::toggled, this, &SweepPage::fit_columns);
  connect(compare_, &QPushButton::clicked, this, [this] { workspace_->trigger(u"runs.compare"_s); });
  connect(replay_, &QPushButton::clicked, this, [this] { workspace_->trigger(u"runs.replay"_s); });
  connect(resume_, &QPushButton::clicked, this, [this] { workspace_->resume_run(run_->id); });
}

void SweepPage::build_charts() {
  rows_ = make_splitter(Qt::Vertical);
  auto* top = make_splitter(Qt::Horizontal, rows_);
  auto* bottom = make_splitter(Qt::Horizontal, rows_);
  const QString waiting = tr("Points appear when they are complete");
  const auto by_load = [&](const QString& title, const QString& unit, AxisQuantity quantity) {
    auto* p = new Chart({.title = title, .unit = unit, .quantity = quantity, .empty = waiting}, link_, top);
    p->set_scale(Scale::logarithmic);
    connect(p, &Chart::group_hovered, this, &SweepPage::emphasise);
    return p;
  };
  ttft_ = by_load(tr("TTFT"), tr("median to p99"), AxisQuantity::seconds);
  tpot_ = by_load(tr("TPOT"), tr("median to p99"), AxisQuantity::seconds);
  throughput_ = by_load(tr("Throughput"), tr("output tokens/s"), AxisQuantity::plain);
  timeline_ = new RequestTimeline(by_time_, bottom);
  const QString unrecorded = tr("The state of the server is not recorded");
  in_flight_ =
      new Chart({.title = tr("Requests"), .quantity = AxisQuantity::count, .empty = unrecorded, .from_zero = true},
                by_time_, bottom);
  kv_ = new Chart({.title = tr("KV blocks in use"),
                   .unit = tr("% of all blocks"),
                   .quantity = AxisQuantity::plain,
                   .empty = unrecorded,
                   .from_zero = true},
                  by_time_, bottom);
  for (Chart* chart : rows_->findChildren<Chart*>()) chart->setMinimumHeight(kChartHeight);
  build_table();
  rows_->addWidget(table_);
  bottom->setSizes({400, 300, 300});
  set_shares(*rows_, {210, 180, 150}, {5, 5, 3});
  for (QSplitter* s : {rows_, top, bottom}) s->setChildrenCollapsible(false);
  content_->addWidget(rows_, 1);
}

void SweepPage::build_table() {
  table_ = make_table(model_, tr("Points of the sweep"));
  table_->setMouseTracking(true);
  table_->horizontalHeader()->setResizeContentsPrecision(0);  // considers visible rows only; columns only grow
  table_->viewport()->installEventFilter(this);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (selecting_ || !now.isValid()) return;
    chosen_ = true;
    select(static_cast<size_t>(now.row()));
  });
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& at) {
    if (!view_ || static_cast<size_t>(at.row()) >= view_->set.points.size()) return;
    link_.set_cursor(axis_.place(view_->set.points[static_cast<size_t>(at.row())]));
    emphasise(static_cast<int>(line_of_point(static_cast<size_t>(at.row()))));
  });
  copy_on_ctrl_c(*table_);
  freeze_columns(*table_, SweepModel::verdict);
}

}  // namespace mw::ui

#include "moc_sweep_page.cpp"
