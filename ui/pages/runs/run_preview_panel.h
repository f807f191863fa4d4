// SPDX-License-Identifier: GPL-3.0-or-later
// A run at a glance: its loss, what differs from the previous run of its kind, and its files. GUI thread.
#pragma once
#include <QSplitter>

#include "core/views/run_list.h"
#include "ui/charts/chart.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

class RunPreviewPanel : public QSplitter {
  Q_OBJECT
 public:
  explicit RunPreviewPanel(QWidget* parent = nullptr);
  void show_run(const views::ListedRun& run, const views::RunPreview& preview);
  Chart& loss() { return *loss_; }
  TableModel<store::SettingChange>& changes() { return changes_; }
  TableModel<views::Artefact>& artefacts() { return artefacts_; }

 private:
  ChartLink by_step_;
  Chart* loss_;
  TableModel<store::SettingChange> changes_;
  TableModel<views::Artefact> artefacts_;
  QTableView *changes_view_, *artefacts_view_;
  QLabel *no_changes_, *no_artefacts_;
};

}  // namespace mw::ui
