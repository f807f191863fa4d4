// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh envelope of the Serve page: the sweep of the form simulated on every mesh of the target, the best mesh at
// each load and the rates at which it changes. Everything is predicted. GUI thread.
#pragma once
#include <QTableView>

#include "core/jobs/sweep_envelope.h"
#include "ui/charts/chart.h"
#include "ui/pages/serve/settings_row.h"
#include "ui/session/background_task.h"
#include "ui/session/workspace.h"
#include "ui/theme/table_model.h"

class QComboBox;
class QPushButton;

namespace mw::ui {

class ElidedLabel;

// One row per rate, one column per simulated mesh.
class EnvelopeModel : public TableModel<jobs::EnvelopePoint> {
 public:
  void show(const jobs::EnvelopeRuns& runs, const std::vector<jobs::EnvelopePoint>& points);
  void clear() { set_table({}, {}); }
};

class EnvelopeTab : public QWidget {
  Q_OBJECT
 public:
  EnvelopeTab(Document& document, plan::LoadContext context, QWidget* parent = nullptr);
  void attach(Workspace& workspace) { workspace_ = &workspace; }
  void show_frame();
  void restyle() { show_envelope(); }
  void simulate();
  void stop() { task_.cancel(); }
  bool is_busy() const { return task_.is_busy(); }
  bool is_outdated() const;  // the document has changed since the simulation
  const std::optional<jobs::EnvelopeRuns>& runs() const { return runs_; }
  Chart& chart() { return *chart_; }
  QTableView& table() { return *table_; }
  QComboBox& metric() { return *metric_; }
  QComboBox& length() { return *length_; }
  QString note() const;     // what is said before the simulation
  QString verdict() const;  // crossovers, or why there is no envelope

 signals:
  void problem(const mw::Problem& problem);
  void busy_changed();

 private:
  void build();
  void read_note();
  void take_result();
  void show_progress();
  void show_envelope();

  Document& document_;
  plan::LoadContext context_;
  Workspace* workspace_ = nullptr;
  ChartLink link_;
  experiment::Experiment noted_, simulated_;  // the documents of note and runs
  bool changed_ = true;
  std::optional<jobs::EnvelopeRuns> runs_;
  BackgroundTask<std::string> note_task_;
  BackgroundTask<jobs::EnvelopeRuns> task_;
  EnvelopeModel model_;
  SettingsRow* form_;
  QPushButton *start_, *stop_;
  QComboBox *metric_, *length_;
  ElidedLabel *note_, *verdict_;
  Chart* chart_;
  QTableView* table_;
};

}  // namespace mw::ui
