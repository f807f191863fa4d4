// SPDX-License-Identifier: GPL-3.0-or-later
// Table of predicted minus measured for each term of a run, read and predicted on a worker thread. GUI thread.
#pragma once
#include "core/compare/residuals.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

class ResidualsDialog : public TaskDialog {
  Q_OBJECT
 public:
  ResidualsDialog(std::filesystem::path runs_folder, plan::LoadContext context, QWidget* parent = nullptr);
  void show_run(const store::RunId& run);
  BackgroundWork& task() { return task_; }
  TableModel<compare::Residual>& rows() { return rows_; }
  QTableView& table() { return *table_; }

 public slots:
  void reject() override;  // cancels the prediction

 private:
  void show_outcome();

  std::filesystem::path runs_folder_;
  plan::LoadContext context_;
  store::RunId run_;
  TableModel<compare::Residual> rows_;
  QTableView* table_;
  BackgroundTask<compare::Residuals> task_{"RESIDUALS"};
};

}  // namespace mw::ui
