// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that trains the experiment of the form with several values of some keys, one run after another: fields,
// progress, and the trials as a table of text. GUI thread.
#pragma once
#include "core/jobs/tune.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"

class QComboBox;
class QPlainTextEdit;
class QSpinBox;

namespace mw::ui {

class TuneDialog : public TaskDialog {
  Q_OBJECT
 public:
  TuneDialog(std::filesystem::path runs_folder, plan::LoadContext context, QWidget* parent = nullptr);
  void open_with(experiment::Experiment experiment);
  BackgroundWork& task() { return task_; }
  QPlainTextEdit& varied() { return *varied_; }  // one key a line
  QComboBox& method() { return *method_; }
  QSpinBox& trials() { return *trials_; }
  QComboBox& metric() { return *metric_; }
  QPushButton& resume() { return *resume_; }  // hidden if no tuning was cut off

 private:
  void show_state();
  void show_outcome();
  void begin();
  void start(jobs::TuneRequest request);
  void find_unfinished();

  std::filesystem::path runs_folder_;
  plan::LoadContext context_;
  experiment::Experiment experiment_;
  BackgroundTask<jobs::TuneReport> task_{"TUNE"};
  QPlainTextEdit* varied_;
  QComboBox *method_, *metric_;
  QSpinBox* trials_;
  QPushButton* resume_;
  std::string unfinished_;  // id of the newest tuning that was cut off, or empty
};

}  // namespace mw::ui
