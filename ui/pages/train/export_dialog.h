// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that exports an experiment as a recipe: choice of recipe and folder, preview of files and findings. GUI
// thread.
#pragma once
#include "core/jobs/sweep_run.h"
#include "ui/pages/train/dialog_choices.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"

class QCheckBox;
class QListWidget;

namespace mw::ui {

class ExportDialog : public TaskDialog {
  Q_OBJECT
 public:
  ExportDialog(std::filesystem::path templates, plan::LoadContext context, QWidget* parent = nullptr);
  void open_with(std::vector<NamedExperiment> experiments, int chosen);
  ExperimentChoice& experiment() { return *experiment_; }
  RecipeChoice& recipe() { return *recipe_; }
  QLineEdit& folder() { return *folder_; }
  QListWidget& files() { return *files_; }
  QListWidget& remarks() { return *remarks_; }
  QCheckBox& overwrite() { return *overwrite_; }
  void set_recipe(const QString& name);  // that of the last session

 private:
  void build();
  void choose();
  void preview();
  void show_preview();
  void show_outcome();
  void show_state();
  void write();

  struct Preview {
    recipes::RecipeInput subject;
    std::vector<std::string> files;
  };
  struct Exported {
    std::shared_ptr<const Preview> preview;
    std::filesystem::path folder;  // written to; empty: preview only
    size_t files = 0;
  };
  std::filesystem::path templates_;
  plan::LoadContext context_;
  BackgroundTask<Exported> task_;
  std::shared_ptr<const Preview> preview_;  // null: not available or failed
  ExperimentChoice* experiment_;
  RecipeChoice* recipe_;
  QLineEdit* folder_;
  QListWidget *files_, *remarks_;
  QCheckBox* overwrite_;
};

}  // namespace mw::ui
