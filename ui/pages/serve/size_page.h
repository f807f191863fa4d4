// SPDX-License-Identifier: GPL-3.0-or-later
// The batch sizes of the Serve page: one live or finished size run, built from its events. GUI thread.
#pragma once
#include <QSplitter>
#include <array>
#include <map>

#include "ui/pages/serve/sizes_model.h"
#include "ui/plot/plot.h"
#include "ui/run_views/run_header.h"
#include "ui/session/workspace.h"

class QPushButton;
class QStackedWidget;
class QTableView;

namespace mw::ui {

class ElidedLabel;

class SizePage : public QWidget {
  Q_OBJECT
 public:
  SizePage(RunController& runs, QWidget* parent = nullptr);
  void attach(Workspace& workspace) { workspace_ = &workspace; }
  void show_frame();  // redraws what changed since the last frame
  void restyle();     // after a theme change
  PlotLink& link() { return by_batch_; }
  Plot& total() { return *total_; }
  Plot& per_token() { return *per_token_; }
  Plot& memory(serve::Workload workload) { return *memory_.at(workload); }
  SizesModel& model() { return model_; }
  QTableView& table() { return *table_; }
  RunHeader& header() { return *header_; }
  QString settings_text() const;
  QByteArray save_layout() const { return rows_->saveState(); }
  void restore_layout(const QByteArray& state) { rows_->restoreState(state); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build();
  QWidget* bar();
  QWidget* charts();
  void build_table();
  void adopt();   // shows another run
  void redraw();  // updates charts and table
  void fit_columns();

  RunController& runs_;
  Workspace* workspace_ = nullptr;
  PlotLink by_batch_;
  RunPtr run_;
  SizeViewPtr view_;
  std::array<int, SizesModel::columns> column_widths_{};
  std::size_t points_seen_ = 0;
  bool changed_ = true, started_ = false;
  SizesModel model_;
  QStackedWidget* stack_;
  RunHeader* header_;
  ElidedLabel* settings_;
  QPushButton *edit_, *measure_, *stop_, *copy_;
  QSplitter* rows_;
  Plot *total_, *per_token_;
  std::map<serve::Workload, Plot*> memory_;
  QTableView* table_;
};

}  // namespace mw::ui
