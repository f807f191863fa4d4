// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/samples_view.h"

#include <QHeaderView>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QTableView>

#include "ui/theme/tables.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

SamplesView::SamplesView(ChartLink& steps, QWidget* parent)
    : QSplitter(Qt::Horizontal, parent),
      steps_(steps),
      table_(make_table(rows_, tr("Samples by step"))),
      detail_(new SampleDetail) {
  show_when_empty(*table_, tr("No samples from held-out prompts yet"));
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  for (const auto& [c, w] : {std::pair{SamplesModel::step, 56}, std::pair{SamplesModel::verdict, 74}}) {
    table_->horizontalHeader()->setSectionResizeMode(c, QHeaderView::Fixed);
    table_->setColumnWidth(c, w);
  }
  table_->setMinimumWidth(160);
  addWidget(table_);
  addWidget(detail_);
  setHandleWidth(5);
  setSizes({500, 400});
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& at) { open(at.row()); });
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& at) { open(at.row()); });
}

void SamplesView::show_run(const RunPtr& run) {
  run_ = run;
  detail_->hide();
  rows_.show_run(run);
}

// New rows are inserted at the top; the visible rows stay if the user has scrolled or pinned a step.
void SamplesView::grow() {
  const bool newest = table_->verticalScrollBar()->value() == 0 && !steps_.playhead();
  const QPersistentModelIndex top = table_->indexAt(QPoint(0, 0));
  rows_.grow();
  if (!newest && top.isValid()) table_->scrollTo(top, QAbstractItemView::PositionAtTop);
}

void SamplesView::open(int row) {
  table_->selectRow(row);
  detail_->show_sample(rows_.row(row));
  steps_.set_playhead(static_cast<double>(rows_.step_of(row)));
}

void SamplesView::follow_playhead() {
  const auto head = steps_.playhead();
  if (!head || !run_) {
    if (table_->selectionModel()->hasSelection()) table_->scrollToTop();  // unpinned: shows the newest
    table_->clearSelection();
    return;
  }
  rows_.grow();
  // The last samples at or before the playhead.
  int row = 0;
  while (row < rows_.rowCount() && static_cast<double>(rows_.step_of(row)) > *head + 0.5) ++row;
  if (row == rows_.rowCount()) {
    table_->clearSelection();
    return;
  }
  const int selected = table_->currentIndex().row();
  if (selected >= 0 && rows_.step_of(selected) == rows_.step_of(row)) return;  // of that step, too
  const QSignalBlocker quiet(table_);
  table_->selectRow(row);
  table_->scrollTo(rows_.index(row, 0), QAbstractItemView::PositionAtTop);
}

}  // namespace mw::ui

#include "moc_samples_view.cpp"
