// SPDX-License-Identifier: GPL-3.0-or-later
// Replays recorded requests on a simulated server, by default that of the recording. Shows the progress and emits the
// run with the result. GUI thread.
#pragma once
#include <map>

#include "core/compare/replay.h"
#include "core/jobs/sweep_run.h"
#include "ui/form/form_field.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"

class QCheckBox;
class QComboBox;

namespace mw::ui {

class ReplayDialog : public TaskDialog {
  Q_OBJECT
 public:
  ReplayDialog(std::filesystem::path runs_folder, plan::LoadContext context, QWidget* parent = nullptr);
  // Replays all points, or one by its index in the recording.
  void open_with(compare::Recording recording, std::optional<size_t> point);
  BackgroundWork& task() { return task_; }
  experiment::Experiment server() const;
  FormField* field(const std::string& key);
  QComboBox& points() { return *points_; }
  QCheckBox& explain() { return *explain_; }

 signals:
  void replayed(const QString& run);  // the run with the result

 private:
  void add(const std::string& key, const QString& caption, QFormLayout& form);
  void show_server();
  QString default_mesh(experiment::Experiment server) const;
  void show_progress();
  void show_outcome();
  void start();

  std::filesystem::path runs_folder_;
  plan::LoadContext load_context_;
  plan::PlanContextPtr context_;
  compare::Recording recording_;
  std::map<std::string, Json> edits_;
  std::vector<FormField*> fields_;
  QComboBox* points_;
  QCheckBox* explain_;
  BackgroundTask<store::RunId> task_{"REPLAY"};
};

}  // namespace mw::ui
