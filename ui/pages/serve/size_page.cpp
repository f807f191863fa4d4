// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/size_page.h"

#include <QClipboard>
#include <QEvent>
#include <QGuiApplication>
#include <QHeaderView>
#include <QPushButton>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "core/experiment/parameters.h"
#include "ui/form/field.h"
#include "ui/theme/elided_label.h"
#include "ui/theme/empty_page.h"
#include "ui/theme/icons.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr serve::Workload kWorkloads[] = {serve::Workload::rollout, serve::Workload::forward,
                                          serve::Workload::chunked_forward};

// Settings outside of the Sizing group that affect a sizing.
bool shapes_a_sizing(const experiment::Parameter& p) {
  return p.group == "Sizing" || p.key == "train.dtype" || p.key == "target.memory_gib";
}

}  // namespace

SizePage::SizePage(RunController& runs, QWidget* parent)
    : QWidget(parent), runs_(runs), stack_(new QStackedWidget(this)) {
  setObjectName(u"pageBody"_s);
  by_batch_.set_x(tr("batch"), Quantity::count);
  build();
  connect(&runs_, &RunController::shown_changed, this, &SizePage::adopt);
  connect(&runs_, &RunController::shown_updated, this, [this] { changed_ = true; });
  connect(&runs_, &RunController::state_changed, this, [this] { changed_ = true; });
  connect(&by_batch_, &PlotLink::cursor_changed, this, [this] {
    // The rows of the pinned batch.
    const auto head = by_batch_.playhead();
    table_->clearSelection();
    for (int row = 0; head && row < model_.rowCount(); ++row)
      if (QString::number(model_.row(row).batch) == by_batch_.x_text(*head))
        table_->selectionModel()->select(model_.index(row, 0), QItemSelectionModel::Select | QItemSelectionModel::Rows);
  });
  adopt();
}

void SizePage::build() {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 4, 8, 6);
  column->setSpacing(3);
  header_ = new RunHeader(runs_, this);
  column->addWidget(header_);
  const auto measure = [this] { workspace_->trigger(u"run.size"_s); };
  const auto show_settings = [this] { workspace_->show_setting("size.batches"); };
  stack_->addWidget(
      empty_page(
          tr("No sizing yet"),
          tr("Measure runs the model of the experiment on this machine with several batch sizes and shows time, time "
             "per\ntoken and memory for generation, for scoring with all logits at once and for scoring in chunks. "
             "Batches that\nare predicted not to fit are not run. Set batches and lengths in the Sizing group of the "
             "form."),
          {{tr("Measure Batch Sizes"), measure},
           {tr("Show Sizing Settings"), show_settings},
           {tr("Show Earlier Runs"), [this] { workspace_->show_page(Page::runs); }}},
          this)
          .page);
  auto* full = new QWidget(this);
  auto* inner = flush_layout<QVBoxLayout>(full, 4);
  inner->addWidget(bar());
  inner->addWidget(charts(), 1);
  stack_->addWidget(full);
  column->addWidget(stack_, 1);
  connect(edit_, &QPushButton::clicked, this, show_settings);
  connect(measure_, &QPushButton::clicked, this, measure);
  connect(stop_, &QPushButton::clicked, this, [this] { workspace_->trigger(u"run.stop"_s); });
  connect(copy_, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(model_.csv()); });
}

QWidget* SizePage::bar() {
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(2, 0, 0, 0);
  row->setSpacing(6);
  settings_ = new ElidedLabel(Qt::ElideRight, bar);
  settings_->setProperty("muted", true);
  const auto button = [&](const QString& text, const QString& tip, Glyph glyph = Glyph::none) {
    auto* b = new QPushButton(icon(glyph), text, bar);
    b->setToolTip(tip);
    row->addWidget(b);
    return b;
  };
  row->addWidget(settings_, 1);
  edit_ = button(tr("Show Settings"), tr("Show the sizing settings in the form"));
  copy_ = button(tr("Copy Table"), tr("Copy all rows as CSV with full precision, in seconds and bytes"), Glyph::copy);
  measure_ = button(tr("Measure"), tr("Measure the experiment in the form as a new run (Ctrl+F5)"), Glyph::run);
  stop_ = button(tr("Stop"), tr("Stop after the current token and keep the finished points (Shift+F5)"), Glyph::stop);
  return bar;
}

QWidget* SizePage::charts() {
  rows_ = make_splitter(Qt::Vertical);
  const QString waiting = tr("Points appear when they are measured"), unit = tr("by batch size");
  auto* times = make_splitter(Qt::Horizontal, rows_);
  total_ = new Plot({.title = tr("Total time"), .unit = unit, .quantity = Quantity::seconds, .empty = waiting},
                    by_batch_, times);
  per_token_ = new Plot({.title = tr("Time per token"), .unit = unit, .quantity = Quantity::seconds, .empty = waiting},
                        by_batch_, times);
  for (Plot* p : {total_, per_token_}) p->set_scale(Scale::logarithmic);
  auto* memory = make_splitter(Qt::Horizontal, rows_);
  for (const serve::Workload w : kWorkloads)
    memory_[w] = new Plot(
        {.title = tr("%1 memory").arg(short_text(w)), .quantity = Quantity::bytes, .empty = waiting, .from_zero = true},
        by_batch_, memory);
  build_table();
  rows_->addWidget(table_);
  rows_->setSizes({190, 220, 160});
  rows_->setStretchFactor(0, 4);
  rows_->setStretchFactor(1, 5);
  rows_->setStretchFactor(2, 3);
  return rows_;
}

void SizePage::build_table() {
  table_ = new QTableView;
  set_up_table(*table_, model_, tr("Measured batch sizes"));
  table_->horizontalHeader()->moveSection(SizesModel::result, SizesModel::columns - 1);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->installEventFilter(this);
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& at) {
    for (const Tick& stop : by_batch_.stops())
      if (stop.label == QString::number(model_.row(at.row()).batch)) by_batch_.set_playhead(stop.value);
  });
  copy_on_ctrl_c(*table_);
}

void SizePage::adopt() {
  const RunPtr run = runs_.shown(RunKind::size);
  if (run && run == run_) return;
  run_ = run;
  view_.reset();
  by_batch_.reset();
  stack_->setCurrentIndex(run_ ? 1 : 0);
  changed_ = true;
  show_frame();
}

void SizePage::restyle() {
  view_.reset();
  changed_ = true;
  show_frame();
}

void SizePage::show_frame() {
  if (!changed_ || !isVisible()) return;
  changed_ = false;
  const RunPtr live = runs_.live();
  header_->show_run(run_, RunKind::size);
  measure_->setEnabled(!live);
  stop_->setEnabled(live && live->kind() == RunKind::size && !runs_.is_stopping());
  const bool started = run_ && !run_->view.info().empty();
  if (!view_ || points_seen_ != (run_ ? run_->view.points().size() : 0) || started_ != started) {
    started_ = started;
    redraw();
  }
}

void SizePage::redraw() {
  points_seen_ = run_ ? run_->view.points().size() : 0;
  view_ = std::make_shared<views::SizeView>(run_ ? views::size_view(run_->view) : views::SizeView{});
  const BatchAxis axis = batch_axis(*view_);
  by_batch_.set_stops(axis.stops);
  by_batch_.set_data(axis.range);
  const Notes time = time_notes(*view_);
  total_->set_lines(size_lines(*view_, [](const auto& m) { return m.seconds; }));
  per_token_->set_lines(size_lines(*view_, [](const auto& m) { return m.seconds_per_token(); }));
  for (Plot* p : {total_, per_token_}) p->set_notes(time.marks, time.caption);
  for (auto& [workload, plot] : memory_) {
    const Notes notes = memory_notes(*view_, workload);
    plot->set_stack(size_stack(view_, workload));
    plot->set_levels(size_levels(*view_));
    plot->set_notes(notes.marks, notes.caption);
    plot->setVisible(view_->lines.empty() || std::any_of(view_->lines.begin(), view_->lines.end(),
                                                         [&](const auto& l) { return l.workload == workload; }));
  }
  model_.show(view_);
  fit_columns();
  settings_->setText(settings_text());
}

// Shows memory by category only if all columns fit, because the charts above show it too.
void SizePage::fit_columns() {
  constexpr int kResult = 150;  // the tooltip has the full text
  const QAbstractItemView& view = *table_;
  int sum = kResult;
  for (int c = 0; c < SizesModel::columns; ++c) {
    if (!model_.is_column_used(c)) continue;
    int& width = column_widths_[static_cast<size_t>(c)];
    const int wanted = std::max(view.sizeHintForColumn(c), table_->horizontalHeader()->sectionSizeHint(c)) + 6;
    width = points_seen_ <= 1 ? wanted : std::max(width, wanted);
    if (c != SizesModel::result) sum += width;
  }
  const bool all = sum <= table_->viewport()->width();
  for (int c = 0; c < SizesModel::columns; ++c) {
    table_->setColumnHidden(c, !model_.is_column_used(c) || (c >= SizesModel::categories && !all));
    if (c != SizesModel::result) table_->setColumnWidth(c, column_widths_[static_cast<size_t>(c)]);
  }
}

// The settings at the start of the run, with the labels of the parameter table.
QString SizePage::settings_text() const {
  QStringList parts, others;
  if (!run_) return {};
  for (const experiment::Parameter& p : experiment::parameters()) {
    if (!shapes_a_sizing(p) || p.key == "size.workloads" || p.key == "size.batches") continue;  // shown by the charts
    const Json* set = raw_value(run_->record, p.key);
    if (!set && p.key == "target.memory_gib") continue;
    const Json& json = set ? *set : p.fallback;
    const QString value = json.is_boolean() ? (json.get<bool>() ? tr("on") : tr("off")) : field_text(json);
    const bool of_sizing = p.group == "Sizing";
    (of_sizing ? parts : others) << (p.unit.empty() ? tr("%1 %2").arg(qs(p.label), value)
                                                    : tr("%1 %2 %3").arg(qs(p.label), value, qs(p.unit)));
  }
  return (parts + others).join(u"  \u00B7  "_s);
}

bool SizePage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_ && event->type() == QEvent::Resize) fit_columns();
  return QWidget::eventFilter(watched, event);
}

}  // namespace mw::ui
