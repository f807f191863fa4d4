// SPDX-License-Identifier: GPL-3.0-or-later
// Construction of the sweep page.
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/pages/serve/sweep_page.h"
#include "ui/run_views/drag_button.h"
#include "ui/theme/elided_label.h"
#include "ui/theme/empty_page.h"
#include "ui/theme/icons.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"

namespace mw::ui {

void SweepPage::build() {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 4, 8, 6);
  column->setSpacing(4);
  form_ = new SweepForm(document_, this);
  column->addWidget(form_);
  header_ = new RunHeader(runs_, this);
  column->addWidget(header_);
  stack_ = new QStackedWidget(this);
  stack_->addWidget(empty_page());
  auto* full = new QWidget(this);
  auto* inner = new QVBoxLayout(full);
  inner->setContentsMargins(0, 0, 0, 0);
  inner->setSpacing(4);
  inner->addWidget(bar());
  inner->addWidget(charts(), 1);
  stack_->addWidget(full);
  column->addWidget(stack_, 1);
}

QWidget* SweepPage::bar() {
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(2, 0, 0, 0);
  row->setSpacing(6);
  verdict_ = new ElidedLabel(Qt::ElideRight, bar);
  verdict_->setAccessibleName(tr("How the server kept up"));
  row->addWidget(verdict_, 1);
  const auto add = [&](QPushButton* b, const QString& tip) {
    b->setToolTip(tip);
    row->addWidget(b);
    return b;
  };
  more_ = add(new QPushButton(tr("Settings"), bar), tr("Go to every setting of sweep and server in the form"));
  copy_ = add(new QPushButton(icon(Glyph::copy), tr("Copy Table"), bar),
              tr("Every point as CSV, under vLLM's names and in its units"));
  compare_ = new DragButton(tr("Compare"), bar);
  add(compare_, tr("Add this sweep to the Compare page, or drag it there"));
  replay_ = add(new QPushButton(tr("Replay\u2026"), bar),
                tr("What these requests would have met on another target, mesh, KV type or cache policy"));
  resume_ = add(new QPushButton(tr("Resume"), bar), tr("Go on with this sweep: the points it has are kept"));
  run_button_ = add(new QPushButton(icon(Glyph::run), tr("Run Sweep"), bar),
                    tr("Sweep rates and prompts of the form, as a new run (Ctrl+Shift+F5)"));
  stop_ = add(new QPushButton(icon(Glyph::stop), tr("Stop"), bar),
              tr("End the sweep; the points so far are kept (Shift+F5)"));
  compare_->set_run([this] { return run_ ? run_->id : store::RunId(); });
  return bar;
}

QWidget* SweepPage::charts() {
  rows_ = new QSplitter(Qt::Vertical);
  top_ = new QSplitter(Qt::Horizontal, rows_);
  bottom_ = new QSplitter(Qt::Horizontal, rows_);
  const QString waiting = tr("Each point appears when it is complete");
  const auto by_load = [&](const QString& title, const QString& unit, Quantity quantity) {
    auto* p = new Plot({.title = title, .unit = unit, .quantity = quantity, .empty = waiting}, by_load_, top_);
    p->set_scale(Scale::logarithmic);
    connect(p, &Plot::group_hovered, this, &SweepPage::light);
    return p;
  };
  ttft_ = by_load(tr("TTFT"), tr("median to p99"), Quantity::seconds);
  tpot_ = by_load(tr("TPOT"), tr("median to p99"), Quantity::seconds);
  throughput_ = by_load(tr("Throughput"), tr("output tokens/s"), Quantity::plain);
  timeline_ = new RequestTimeline(by_time_, bottom_);
  auto* state = new QSplitter(Qt::Vertical, bottom_);
  const QString unsaid = tr("The server's state is not recorded");
  in_flight_ = new Plot({.title = tr("Requests"), .quantity = Quantity::count, .empty = unsaid, .from_zero = true},
                        by_time_, state);
  kv_ = new Plot({.title = tr("KV blocks in use"),
                  .unit = tr("% of all"),
                  .quantity = Quantity::plain,
                  .empty = unsaid,
                  .from_zero = true},
                 by_time_, state);
  build_table();
  rows_->addWidget(table_);
  bottom_->setSizes({560, 400});
  rows_->setSizes({230, 190, 130});
  rows_->setStretchFactor(0, 5);
  rows_->setStretchFactor(1, 5);
  rows_->setStretchFactor(2, 3);
  for (QSplitter* s : {rows_, top_, bottom_, state}) {
    s->setHandleWidth(5);
    s->setChildrenCollapsible(false);
  }
  return rows_;
}

void SweepPage::build_table() {
  table_ = new QTableView;
  set_up_table(*table_, model_, tr("Points of the sweep"));
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
    by_load_.set_cursor(axis_.place(view_->set.points[static_cast<size_t>(at.row())]));
    light(static_cast<int>(line_of_point(static_cast<size_t>(at.row()))));
  });
  copy_on_ctrl_c(*table_);
}

QWidget* SweepPage::empty_page() {
  const EmptyPage empty = ui::empty_page(
      tr("No sweep yet"),
      tr("Press Run Sweep: every rate and prompt length of the row above becomes one point, with its latencies,\n"
         "throughput and each request. This machine's engine is measured, other targets are simulated step by step,\n"
         "and a server over HTTP is measured with the same traffic. Points that are complete survive a stop."),
      {tr("Run Sweep"), tr("Sweep Settings"), tr("Earlier Runs")}, this);
  connect(empty.buttons[0], &QPushButton::clicked, this, &SweepPage::run_wanted);
  connect(empty.buttons[1], &QPushButton::clicked, this, &SweepPage::settings_wanted);
  connect(empty.buttons[2], &QPushButton::clicked, this, &SweepPage::runs_wanted);
  return empty.page;
}

}  // namespace mw::ui
