// SPDX-License-Identifier: GPL-3.0-or-later
// The state of every compared training run at the playhead that their charts share, over steps or time. GUI thread.
#pragma once
#include "core/compare/compared_snapshots.h"
#include "ui/charts/chart_link.h"
#include "ui/theme/table_model.h"

class QComboBox;

namespace mw::ui {

class PlayheadBar;

class RunsAtPlayhead : public QWidget {
  Q_OBJECT
 public:
  RunsAtPlayhead(const std::vector<compare::ComparedRun>& runs, const QStringList& names, QWidget* parent);
  void refresh();  // after the runs or the range of the axis have changed
  bool by_time() const;
  ChartLink& link() { return link_; }
  QComboBox& axis() { return *axis_; }
  TableModel<compare::RunSnapshot>& snapshots() { return snapshots_; }

 signals:
  void axis_changed();

 private:
  void show_snapshots();
  const std::vector<compare::ComparedRun>& runs_;
  ChartLink link_;
  TableModel<compare::RunSnapshot> snapshots_;
  PlayheadBar* bar_;
  QComboBox* axis_;
};

}  // namespace mw::ui
