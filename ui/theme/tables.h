// SPDX-License-Identifier: GPL-3.0-or-later
// Common setup of all tables. GUI thread.
#pragma once
#include <QHeaderView>
#include <QLabel>
#include <QTableView>

namespace mw::ui {

// Selects whole rows of one line each, without grid and row numbers; Tab leaves the table.
QTableView* make_table(QAbstractItemModel& model, const QString& name, QWidget* parent = nullptr);
// The selected rows and the header as displayed, with tabs between cells for spreadsheets.
QString selected_rows(const QTableView& view);
void copy_on_ctrl_c(QTableView& view);  // copies selected_rows()
// Keeps the first columns visible beside a horizontal scroll bar: a second view of the same rows lies over them. Call
// it once, after the model is set. Returns that view, which is hidden while all columns fit.
QTableView* freeze_columns(QTableView& view, int count = 1);
// Shows a text in the middle of the view while it has no rows.
QLabel* show_when_empty(QAbstractItemView& view, const QString& text);

}  // namespace mw::ui
