// SPDX-License-Identifier: GPL-3.0-or-later
// Charts of the Compare page: one view at a time; every run keeps its colour and mark. GUI thread.
#pragma once
#include <QWidget>

#include "core/compare/compared_snapshots.h"
#include "core/compare/replay_explained.h"
#include "core/jobs/sweep_run.h"
#include "ui/charts/chart.h"
#include "ui/pages/compare/heat_table.h"
#include "ui/theme/table_model.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QStackedWidget;
class QTabBar;
class QTableView;

namespace mw::ui {

enum class CompareView {
  load,
  length,
  pareto,
  distribution,
  heat,
  cost,
  why,
  replayed,
  loss,
  answers,
  settings,
  sizes
};
inline constexpr size_t kCompareViews = 12;

class ParallelChart;
class PlayheadBar;
class WhyView;

class CompareCharts : public QWidget {
  Q_OBJECT
 public:
  // The runs are of one kind, which decides which views are offered.
  CompareCharts(const std::vector<compare::ComparedRun>& runs, plan::LoadContext context, QWidget* parent = nullptr);
  void refresh();           // call it when the runs have changed
  bool has_curves() const;  // whether a chart has a line of several points
  void set_slo(const options::Slo& slo);
  void set_emphasis(int column);
  void show_view(CompareView view);
  CompareView view() const;
  std::vector<CompareView> views() const;  // of the kind of the runs
  void choose_cell(int input_len, const QString& load);
  const std::vector<Chart*>& charts(CompareView view) const { return charts_[static_cast<size_t>(view)]; }
  HeatTable& heat() { return heat_; }
  QTableView& heat_view() { return *heat_view_; }
  WhyView& why() { return *why_; }
  QComboBox& lengths() { return *length_; }
  QComboBox& loads() { return *load_; }
  QComboBox& metrics() { return *metric_; }
  QLineEdit& once() { return *once_; }
  TableModel<compare::ReplayRow>& replay_rows() { return replay_rows_; }
  // Of training runs: one playhead for all charts, over steps or time.
  TableModel<compare::RunSnapshot>& snapshots() { return snapshots_; }
  ChartLink& playhead() { return link(CompareView::loss); }
  QComboBox& axis() { return *axis_; }
  ParallelChart& parallel() { return *parallel_; }

 signals:
  void hovered(int column);

 private:
  QWidget* page(CompareView view);
  QWidget* heat_page();
  QWidget* replay_page();
  QWidget* playhead_page();
  QWidget* cost_controls();
  bool curves(CompareView view) const;
  void fill_choices();
  void fill(CompareView view);
  void fit_heat_columns();
  void fill_shown();
  void fill_load();
  void fill_length();
  void fill_pareto(CompareView view, const std::vector<std::vector<compare::ComparedCurve>>& curves);
  void fill_distribution();
  void fill_cost();
  bool by_time() const;
  void fill_replay();
  void show_snapshots();
  void fill_training(CompareView view, const std::vector<std::string>& metrics);
  int input_len() const;
  std::string load() const;
  QString name(size_t column) const;
  ChartLink& link(CompareView view, size_t at = 0) {  // charts of training share the steps
    return links_[static_cast<size_t>(view == CompareView::answers ? CompareView::loss : view)][at];
  }
  Chart* chart(CompareView view, size_t at) const { return charts(view)[at]; }
  std::vector<ChartLine> lines(const std::vector<compare::ComparedLine>& all, views::SweepMetric metric) const;
  ChartLine floor_line() const;  // lower bound of TTFT by length, if the audit knows it
  ChartLine points_line(const std::vector<views::Point>& path, size_t column) const;

  const std::vector<compare::ComparedRun>& runs_;
  QStringList names_;
  plan::LoadContext context_;
  options::Slo slo_;
  bool chosen_ = false;  // the user has chosen the view
  std::array<std::array<ChartLink, 2>, kCompareViews> links_;
  std::array<std::vector<Chart*>, kCompareViews> charts_;
  QTabBar* tabs_;
  QComboBox *length_, *load_, *metric_;
  QLabel *length_label_, *load_label_, *metric_label_, *break_even_;
  QLineEdit *demand_, *once_;
  QStackedWidget* stack_;
  TableModel<compare::ReplayRow> replay_rows_;
  TableModel<compare::RunSnapshot> snapshots_;
  QWidget* playhead_page_;
  PlayheadBar* playhead_;
  QComboBox* axis_;
  ParallelChart* parallel_;
  HeatTable heat_;
  QTableView* heat_view_;
  QLabel* heat_axes_;
  WhyView* why_;
};

}  // namespace mw::ui
