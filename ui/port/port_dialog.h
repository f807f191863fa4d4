// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that ports a recipe of TRL and PEFT to an experiment, shows the adaptations to JAX, and shows an experiment as
// settings of TRL. GUI thread.
#pragma once
#include "core/port/port_report.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/table_model.h"

class QListWidget;
class QPlainTextEdit;
class QTableView;
class QTabWidget;

namespace mw::ui {

class ElidedLabel;

// One line of the table of settings, whatever became of it.
struct PortSettingRow {
  enum class Outcome { mapped, assumed, not_read, missing } outcome = Outcome::mapped;
  std::string setting, text, key, value, place, note;
};
struct PortEffectRow {
  std::string target, variant;
  port::VariantFigures figures;
};

class PortDialog : public QDialog {
  Q_OBJECT
 public:
  explicit PortDialog(plan::LoadContext context, QWidget* parent = nullptr);
  // `document`: the experiment of the window, for the settings of TRL.
  void open_with(std::vector<std::filesystem::path> files, const experiment::Experiment& document);
  BackgroundWork& task() { return task_; }
  BackgroundWork& trl_task() { return trl_task_; }
  QTabWidget& tabs() { return *tabs_; }
  QTableView& settings() { return *settings_; }
  QTableView& effects() { return *effects_; }
  QListWidget& steps() { return *steps_; }
  QLineEdit& gpu() { return *gpu_; }
  QLineEdit& tpu() { return *tpu_; }
  QPlainTextEdit& trl_text() { return *trl_text_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }

 signals:
  void experiment_wanted(const experiment::Experiment& experiment);

 private:
  void build_inputs(QVBoxLayout& column);
  void build_settings();
  void build_adaptations();
  void build_trl();
  void build_buttons(QVBoxLayout& column);
  void choose_files();
  void read();
  void show_report();
  void show_step(int index);
  void show_trl();
  void show_state();
  void save_document();
  void open_experiment(const experiment::Experiment& experiment);

  plan::LoadContext context_;
  std::vector<std::filesystem::path> files_;
  BackgroundTask<port::PortReport> task_{"PORT"};
  BackgroundTask<port::TrlSettings> trl_task_{"PORT"};
  std::optional<port::PortReport> report_;
  TableModel<PortSettingRow> setting_rows_;
  TableModel<PortEffectRow> effect_rows_;
  TableModel<port::GuardRule> rule_rows_;
  ElidedLabel* chosen_;
  QLineEdit *gpu_, *tpu_;
  QTabWidget* tabs_;
  QTableView *settings_, *effects_, *rules_;
  QListWidget* steps_;
  QLabel *reason_, *counts_;
  QPlainTextEdit *before_, *after_, *trl_text_;
  ResultText* result_;
  QProgressBar* progress_;
  QPushButton *save_, *open_gpu_, *open_tpu_;
};

}  // namespace mw::ui
