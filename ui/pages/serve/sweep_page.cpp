// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_page.h"

#include <QClipboard>
#include <QEvent>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/run_views/drag_button.h"
#include "ui/theme/elided_label.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// The requested rates, so that the axis exists before the first point.
void add_rates(views::LoadAxis& axis, const experiment::Experiment& record) {
  const Json rates = record.value("sweep.request_rates"), arrival = record.value("sweep.arrival");
  if (!rates.is_array() || arrival == "closed" || arrival == "burst") return;
  for (const Json& r : rates) {
    if (r.is_number() && r.get<double>() > 0) axis.add_rate(r.get<double>());
    if (r.is_string() && r == "inf") axis.add_rate(INFINITY);
  }
}

std::shared_ptr<const views::Series> over_time(const std::vector<formats::LoadSample>& samples,
                                               double (*value)(const formats::LoadSample&)) {
  auto series = std::make_shared<views::Series>();
  for (const auto& s : samples) series->append(s.time_s, value(s));
  return series;
}

}  // namespace

SweepPage::SweepPage(Document& document, RunController& runs, QWidget* parent)
    : QWidget(parent), document_(document), runs_(runs), reader_(runs.catalogue()) {
  setObjectName(u"pageBody"_s);
  by_load_.set_x(tr("rate"), Quantity::plain);
  by_time_.set_x(tr("time"), Quantity::seconds);
  build();
  connect(&runs_, &RunController::shown_changed, this, &SweepPage::adopt);
  connect(&runs_, &RunController::shown_grew, this, [this] { changed_ = true; });
  connect(&runs_, &RunController::state_changed, this, [this] { changed_ = true; });
  connect(&by_load_, &PlotLink::cursor_changed, this, &SweepPage::select_at_playhead);
  connect(run_button_, &QPushButton::clicked, this, &SweepPage::run_wanted);
  connect(stop_, &QPushButton::clicked, this, &SweepPage::stop_wanted);
  connect(more_, &QPushButton::clicked, this, &SweepPage::settings_wanted);
  connect(resume_, &QPushButton::clicked, this, [this] { emit resume_wanted(qs(run_->id)); });
  connect(compare_, &QPushButton::clicked, this, [this] { emit compare_wanted(qs(run_->id)); });
  connect(replay_, &QPushButton::clicked, this, &SweepPage::replay_wanted);
  connect(copy_, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(model_.csv()); });
  adopt();
}

void SweepPage::adopt() {
  const RunPtr run = runs_.shown(RunKind::sweep);
  if (run && run == run_) return;
  run_ = run;
  selected_.reset();
  chosen_ = false;
  by_load_.reset();
  by_time_.reset();
  show_view(std::make_shared<views::SweepView>());
  reader_.show(run_);
  stack_->setCurrentIndex(run_ ? 1 : 0);
  changed_ = true;
  show_frame();
}

void SweepPage::restyle() {
  if (!view_) return;
  redraw();
  redraw_point();
}

bool SweepPage::resumable() const {
  if (!run_ || run_->live || run_->id.empty()) return false;
  const RunState s = run_->view.state();
  return s == RunState::cancelled || s == RunState::failed;
}

void SweepPage::show_frame() {
  if (!isVisible()) return;
  if (const SweepViewPtr newest = reader_.drain()) show_view(newest);
  if (!changed_) return;
  changed_ = false;
  reader_.grow();
  const RunPtr live = runs_.live();
  header_->show_run(run_, RunKind::sweep);
  run_button_->setEnabled(!live);
  stop_->setEnabled(live && live->kind() == RunKind::sweep && !runs_.stopping());
  resume_->setVisible(resumable());
  resume_->setEnabled(!live);
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
  by_load_.set_stops(stops);
  by_load_.set_data(range_of(stops));
  model_.show(view_);
  fit_columns();
  const QString origin = origin_text(view_->set.provenance);
  ttft_->set_unit(tr("median to p99, %1").arg(origin));
  tpot_->set_unit(tr("median to p99, %1").arg(origin));
  throughput_->set_unit(tr("output tokens/s, %1").arg(origin));
  ttft_->set_lines(sweep_lines(*view_, axis_, views::SweepMetric::ttft));
  tpot_->set_lines(sweep_lines(*view_, axis_, views::SweepMetric::tpot));
  ttft_->set_levels(slo_levels(view_->slo, views::SweepMetric::ttft));
  tpot_->set_levels(slo_levels(view_->slo, views::SweepMetric::tpot));
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
    if (chosen_) by_load_.set_playhead(axis_.place(view_->set.points[*point]));
    table_->selectRow(static_cast<int>(*point));
  } else {
    table_->clearSelection();
  }
  selecting_ = false;
  by_time_.reset();
  by_time_.set_x(tr("time"), Quantity::seconds);
  redraw_point();
}

// Selects the point of a load and the current input length after a click or an arrow key.
void SweepPage::select_at_playhead() {
  const auto head = by_load_.playhead();
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
      point, point ? tr("at %1, %2 tokens").arg(qs(views::load_text(*point))).arg(point->input_len) : QString());
  show_capacity();
  double end = point && std::isfinite(point->duration_s) ? point->duration_s : 0;
  if (point)
    for (const auto& r : point->requests) end = std::max(end, views::phases_of(r).end);
  by_time_.set_data({0, end > 0 ? end : 1});
  const Origin origin = origin_of(view_->set.provenance);
  std::vector<PlotLine> flight, blocks;
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

// Of the current input length.
void SweepPage::show_capacity() {
  throughput_->set_limits(selected_ ? capacity_limits(*view_, line_of_point(*selected_)) : std::vector<LevelLine>{});
}

// Emphasises one input length in all charts.
void SweepPage::light(int group) {
  for (Plot* p : {ttft_, tpot_, throughput_}) p->set_emphasis(group);
}

QString SweepPage::verdict() const {
  QStringList parts;
  if (!view_) return {};
  for (const auto& line : view_->lines)
    if (const auto text = verdict_text(view_->set, line, view_->slo); !text.empty())
      parts << tr("%1 tokens: %2").arg(line.input_len).arg(qs(text));
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
  verdict_->setToolTip(verdict());
  QString text;
  if (selected_ && !view_->lines.empty()) {
    const auto& line = view_->lines[line_of_point(*selected_)];
    const QString said = qs(verdict_text(view_->set, line, view_->slo));
    if (!said.isEmpty()) text = tr("%1 tokens: %2").arg(line.input_len).arg(said);
  }
  const auto found = std::count_if(view_->findings.begin(), view_->findings.end(),
                                   [](const auto& f) { return f.verdict != serve::Verdict::fine; });
  if (found > 0) text += (text.isEmpty() ? QString() : u"  \u00B7  "_s) + tr("the audit marks %1").arg(found);
  if (view_->ignored > 0) text += tr("  \u00B7  %1 points could not be read").arg(view_->ignored);
  verdict_->setText(text);
}

void SweepPage::fit_columns() {
  const QAbstractItemView& view = *table_;
  for (int c = 0; c < model_.columnCount(); ++c) {
    table_->setColumnHidden(c, !model_.column_used(c));
    if (!model_.column_used(c)) continue;
    const int wanted = std::max(view.sizeHintForColumn(c), table_->horizontalHeader()->sectionSizeHint(c)) + 6;
    if (model_.rowCount() <= 1 || wanted > table_->columnWidth(c)) table_->setColumnWidth(c, std::min(wanted, 260));
  }
}

bool SweepPage::eventFilter(QObject* watched, QEvent* event) {
  if (table_ && watched == table_->viewport() && event->type() == QEvent::Leave) {
    by_load_.set_cursor(std::nullopt);
    light(-1);
  }
  return QWidget::eventFilter(watched, event);
}

QByteArray SweepPage::save_layout() const {
  return rows_->saveState();
}

void SweepPage::restore_layout(const QByteArray& state) {
  rows_->restoreState(state);
}

}  // namespace mw::ui
