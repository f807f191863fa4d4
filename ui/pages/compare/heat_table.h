// SPDX-License-Identifier: GPL-3.0-or-later
// One metric of every run as a table of prompt length by load: value as colour and number, changes against the baseline
// and marks for audit findings. The runs of one length stand below each other. GUI thread.
#pragma once
#include "core/compare/compare_charts.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

struct HeatRow {
  size_t column = 0;  // of the run
  QString run{};
  int input_len = 0;
  std::vector<compare::HeatMap::Cell> cells{};  // by load
};

class HeatTable : public TableModel<HeatRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::HeatTable)
 public:
  static constexpr int kNames = 2;  // columns before the loads
  HeatTable();
  // `names`: of the runs.
  void show(const std::vector<compare::ComparedRun>& runs, const QStringList& names, views::SweepMetric metric);
  QString load_at(int column) const { return loads_.value(column - kNames); }  // empty for the first columns

 private:
  QVariant cell(const HeatRow& row, int column, int role) const;
  QString cell_text(const compare::HeatMap::Cell& cell) const;
  double share(double value) const;  // 0..1 between the smallest and the largest of all cells, on a log scale
  views::SweepMetric metric_ = views::SweepMetric::ttft;
  QStringList loads_;
  double least_ = 0, most_ = 1;
};

}  // namespace mw::ui
