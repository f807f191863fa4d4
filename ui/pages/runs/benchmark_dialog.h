// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that measures the engine on this machine with one model: the figures as a table, each with its share of the
// measured peaks, saved as a run. GUI thread.
#pragma once
#include "core/jobs/benchmark_run.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/table_model.h"

class QComboBox;
class QTableView;

namespace mw::ui {

class BenchmarkDialog : public TaskDialog {
  Q_OBJECT
 public:
  // Keeps the rates in `hardware_folder` of the user, for plans of this machine; empty: does not.
  BenchmarkDialog(std::filesystem::path runs_folder, std::filesystem::path hardware_folder, QWidget* parent = nullptr);
  // `model`: the folder of the experiment's checkpoint, offered beside the built-in shapes; may be empty.
  void open_with(const std::filesystem::path& model);
  BackgroundWork& task() { return task_; }
  QComboBox& model() { return *model_; }
  QComboBox& length() { return *length_; }
  TableModel<jobs::BenchmarkFigure>& figures() { return figures_; }

 signals:
  void saved(const QString& run);

 private:
  void begin();
  void show_state();
  void show_outcome();

  struct Outcome {
    jobs::MachineBenchmark benchmark;
    jobs::SavedBenchmark saved;
  };
  std::filesystem::path runs_folder_, hardware_folder_;
  QComboBox *model_, *length_;
  TableModel<jobs::BenchmarkFigure> figures_;
  QTableView* table_;
  BackgroundTask<Outcome> task_{"BENCHMARK"};
};

}  // namespace mw::ui
