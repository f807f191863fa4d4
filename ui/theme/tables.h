// SPDX-License-Identifier: GPL-3.0-or-later
// What all tables have in common. GUI thread.
#pragma once
#include <QString>

class QAbstractItemModel;
class QTableView;

namespace mw::ui {

// Whole rows are selected, a line each; no grid, no numbers beside them; Tab leaves the table.
void set_up_table(QTableView& view, QAbstractItemModel& model, const QString& name);
// The selected rows with their header, as they are shown, tabs between cells, for a spreadsheet.
QString selected_rows(const QTableView& view);
void copy_on_ctrl_c(QTableView& view);  // those
// In the middle of the table while it has no rows.
void say_when_empty(QTableView& view, const QString& text);

}  // namespace mw::ui
