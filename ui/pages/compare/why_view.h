// SPDX-License-Identifier: GPL-3.0-or-later
// Explains the gap between the baseline and another run in one cell by a waterfall of simulated factors. Computes it on
// a worker thread; a new request replaces an older one. GUI thread.
#pragma once
#include <QWidget>

#include "core/compare/attribution.h"
#include "ui/charts/chart.h"
#include "ui/session/background_task.h"

class QComboBox;

namespace mw::ui {

class WhyView : public QWidget {
  Q_OBJECT
 public:
  WhyView(const std::vector<compare::ComparedRun>& runs, plan::LoadContext context, QWidget* parent = nullptr);
  // Computes the waterfall if the cell changed. `names`: of the runs.
  void show_cell(const QStringList& names, int input_len, const std::string& load);
  bool is_busy() const { return task_.is_busy(); }
  const std::optional<compare::Waterfall>& shown() const { return shown_; }
  QString message() const;  // why there is no waterfall
  Chart& chart() { return *chart_; }
  QComboBox& other() { return *other_; }
  QComboBox& metric() { return *metric_; }

 private:
  void compute();
  void show_result();
  void show_bars();  // also after a change of the theme
  void show_message(const QString& text);
  const std::vector<compare::ComparedRun>& runs_;
  plan::LoadContext context_;
  int input_len_ = 0;
  QStringList names_;
  std::string load_, computed_key_;
  std::optional<compare::Waterfall> shown_;
  QComboBox *other_, *metric_;
  ChartLink link_;
  Chart* chart_;
  BackgroundTask<compare::Waterfall> task_;
};

}  // namespace mw::ui
