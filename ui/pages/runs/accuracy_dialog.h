// SPDX-License-Identifier: GPL-3.0-or-later
// Published measurements beside their predictions, computed on a worker thread: means by kind, a chart of predicted
// over measured, and a table of the rows. GUI thread.
#pragma once
#include "core/audit/accuracy.h"
#include "ui/charts/chart.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/table_model.h"

class QComboBox;
class QSortFilterProxyModel;
class QTableView;

namespace mw::ui {

class AccuracyDialog : public TaskDialog {
  Q_OBJECT
 public:
  AccuracyDialog(std::filesystem::path resources, plan::LoadContext context, QWidget* parent = nullptr);
  void show_accuracy();  // opens the dialog; predicts when it is first shown
  BackgroundWork& task() { return task_; }
  TableModel<audit::AccuracyRow>& rows() { return rows_; }
  TableModel<audit::AccuracyGroup>& totals() { return totals_; }
  QComboBox& kind() { return *kind_; }
  Chart& chart() { return *chart_; }

 public slots:
  void reject() override;  // cancels the predictions

 private:
  void show_report();
  void show_rows();  // of the chosen kind
  void draw(const std::vector<audit::AccuracyRow>& shown);

  std::filesystem::path resources_;
  plan::LoadContext context_;
  TableModel<audit::AccuracyRow> rows_;
  TableModel<audit::AccuracyGroup> totals_;
  QSortFilterProxyModel* sorted_;
  QComboBox* kind_;
  ChartLink link_;
  Chart* chart_;
  QTableView *totals_table_, *rows_table_;
  BackgroundTask<audit::AccuracyReport> task_{"ACCURACY"};
};

}  // namespace mw::ui
