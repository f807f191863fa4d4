// SPDX-License-Identifier: GPL-3.0-or-later
// Charts of the Compare page: one view at a time; every run keeps its colour and mark. GUI thread.
#pragma once
#include <QWidget>

#include "core/jobs/sweep_run.h"
#include "ui/charts/chart.h"
#include "ui/pages/compare/heat_map_view.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QStackedWidget;
class QTabBar;

namespace mw::ui {

enum class CompareView { load, curve, length, distribution, heat, cost, why, loss };
inline constexpr int kCompareViews = 8;

class WhyView;

class CompareCharts : public QWidget {
  Q_OBJECT
 public:
  CompareCharts(const std::vector<compare::ComparedRun>& runs, hardware::LoadCatalogue catalogue,
                QWidget* parent = nullptr);
  void refresh();  // call it when the runs have changed
  void set_slo(const serve::Slo& slo);
  void set_emphasis(int column);
  void show_view(CompareView view);
  CompareView view() const;
  void choose_cell(int input_len, const QString& load);
  const std::vector<Chart*>& charts(CompareView view) const { return charts_[static_cast<size_t>(view)]; }
  HeatMapView& heat() { return *heat_; }
  WhyView& why() { return *why_; }
  QComboBox& lengths() { return *length_; }
  QComboBox& loads() { return *load_; }
  QComboBox& metrics() { return *metric_; }
  QLineEdit& once() { return *once_; }

 signals:
  void hovered(int column);

 private:
  Chart* add_chart(CompareView view, QWidget* parent, ChartOptions options, ChartLink& link);
  QWidget* controls();
  QWidget* page(CompareView view);
  QWidget* heat_page();
  void add_latency_charts(CompareView view, QWidget* parent, const QString& unit, ChartLink& link);
  void add_distribution_charts(QWidget* parent);
  void add_loss_charts(QWidget* parent);
  QWidget* cost_page();
  void fill_choices();
  void fill();
  void fill_load();
  void fill_curve();
  void fill_length();
  void fill_distribution();
  void fill_heat();
  void fill_cost();
  void fill_loss();
  int input_len() const;
  std::string load() const;
  QString name(size_t column) const;
  std::vector<ChartLine> lines(const std::vector<compare::ComparedLine>& all, views::SweepMetric metric) const;
  ChartLine floor_line() const;  // lower bound of TTFT by length, if the audit knows it
  ChartLine points_line(const std::vector<views::Point>& path, size_t column) const;

  const std::vector<compare::ComparedRun>& runs_;
  hardware::LoadCatalogue catalogue_;
  serve::Slo slo_;
  bool chosen_ = false;  // the user has chosen the view
  ChartLink by_load_, by_throughput_, by_length_, by_ttft_, by_tpot_, by_cost_load_, by_hours_, by_step_;
  std::array<std::vector<Chart*>, kCompareViews> charts_;
  QTabBar* tabs_;
  QComboBox *length_, *load_, *metric_;
  QLabel *length_label_, *load_label_, *metric_label_, *break_even_;
  QLineEdit *demand_, *once_;
  QStackedWidget* stack_;
  HeatMapView* heat_;
  WhyView* why_;
};

}  // namespace mw::ui
