// SPDX-License-Identifier: GPL-3.0-or-later
// What the calibration dialog is put together from.
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/pages/design/calibrate_dialog.h"
#include "ui/theme/dialog_parts.h"
#include "ui/theme/elided_label.h"
#include "ui/theme/icons.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

QHBoxLayout* row_of(QWidget* bar) {
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  return row;
}

QTableView* table(QAbstractTableModel& model, const QString& name) {
  auto* t = new QTableView;
  set_up_table(*t, model, name);
  t->setSelectionMode(QAbstractItemView::SingleSelection);
  t->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  return t;
}

}  // namespace

void CalibrateDialog::build() {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 10, 12, 10);
  column->setSpacing(6);
  column->addWidget(sources_bar());
  column->addWidget(names_bar());
  progress_ = add_progress(*column, tr("Progress of the fit"));
  progress_->setRange(0, 100);
  progress_->hide();
  verdict_ = new QLabel(this);
  verdict_->setWordWrap(true);
  column->addWidget(tables(), 1);
  column->addWidget(verdict_);
  notes_ = new QPlainTextEdit(this);
  notes_->setReadOnly(true);
  notes_->setLineWrapMode(QPlainTextEdit::NoWrap);
  notes_->setTabChangesFocus(true);
  notes_->setAccessibleName(tr("What to know before accepting"));
  notes_->hide();
  column->addWidget(notes_);
  column->addWidget(in_force_bar());
  column->addWidget(buttons());
}

QWidget* CalibrateDialog::sources_bar() {
  auto* bar = new QWidget(this);
  auto* row = row_of(bar);
  add_files_ = new QPushButton(icon(Glyph::open), tr("Add Files…"), bar);
  add_files_->setToolTip(tr("Measurements with their configurations, as rows of JSON"));
  add_runs_ = new QPushButton(tr("Add Runs"), bar);
  add_runs_->setToolTip(tr("Finished training runs of this machine"));
  add_runs_->setMenu(new QMenu(add_runs_));
  clear_ = new QPushButton(tr("Clear"), bar);
  sources_ = new ElidedLabel(Qt::ElideMiddle, bar);
  sources_->setProperty("muted", true);
  row->addWidget(add_files_);
  row->addWidget(add_runs_);
  row->addWidget(clear_);
  row->addWidget(sources_, 1);
  return bar;
}

QWidget* CalibrateDialog::names_bar() {
  auto* bar = new QWidget(this);
  auto* row = row_of(bar);
  row->addWidget(new QLabel(tr("Fit"), bar));
  for (const auto& n : planning::fittable_efficiencies()) {
    auto* chip = new QToolButton(bar);
    chip->setText(qs(n.name));
    chip->setToolTip(qs(n.help));
    chip->setCheckable(true);
    chip->setChecked(n.name == question_.names.front());
    chip->setProperty("chip", true);
    chip->setFocusPolicy(Qt::StrongFocus);
    chip->setAccessibleName(tr("Fit %1: %2").arg(qs(n.name), qs(n.help)));
    names_.push_back(chip);
    row->addWidget(chip);
  }
  row->addStretch(1);
  return bar;
}

QWidget* CalibrateDialog::tables() {
  rows_table_ = table(rows_, tr("Measured rows, predicted now, held out and fitted"));
  efficiencies_table_ = table(efficiencies_, tr("Efficiencies now and as proposed"));
  chart_ = new Plot({.title = tr("Step Time"),
                     .unit = tr("predicted against measured"),
                     .quantity = Quantity::seconds,
                     .empty = tr("Each row is a point here"),
                     .from_zero = true},
                    link_);
  link_.set_x(tr("measured"), Quantity::seconds);
  auto* down = new QSplitter(Qt::Vertical, this);
  auto* across = new QSplitter(Qt::Horizontal, down);
  down->addWidget(rows_table_);
  down->addWidget(across);
  across->addWidget(efficiencies_table_);
  across->addWidget(chart_);
  for (QSplitter* s : {down, across}) {
    s->setHandleWidth(5);
    s->setChildrenCollapsible(false);
  }
  across->setSizes({560, 460});
  down->setSizes({230, 200});
  return down;
}

QWidget* CalibrateDialog::in_force_bar() {
  auto* bar = new QWidget(this);
  auto* row = row_of(bar);
  in_force_ = new ElidedLabel(Qt::ElideRight, bar);
  in_force_->setProperty("muted", true);
  undo_ = new QPushButton(tr("Undo"), bar);
  undo_->setToolTip(tr("Take back the last calibration that was accepted or removed"));
  remove_ = new QPushButton(tr("Remove My Calibration"), bar);
  remove_->setToolTip(tr("Go back to the shipped calibration; the file is kept as calibration.json.bak"));
  row->addWidget(in_force_, 1);
  row->addWidget(undo_);
  row->addWidget(remove_);
  return bar;
}

QWidget* CalibrateDialog::buttons() {
  auto* bar = new QWidget(this);
  auto* row = row_of(bar);
  cancel_ = new QPushButton(tr("Cancel"), bar);
  accept_ = new QPushButton(tr("Accept"), bar);
  accept_->setToolTip(tr("Keep these efficiencies: every plan uses them from now on"));
  for (QPushButton* b : findChildren<QPushButton*>()) b->setAutoDefault(false);  // Return is no acceptance
  row->addStretch(1);
  row->addWidget(cancel_);  // the one that acts is the last, as in the other dialogs
  row->addWidget(accept_);
  return bar;
}

}  // namespace mw::ui
