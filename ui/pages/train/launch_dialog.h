// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that launches a recipe on another machine: recipe, machine, folder and the equivalent command line. GUI
// thread.
#pragma once
#include <QVariantMap>

#include "core/launch/target.h"
#include "ui/pages/train/dialog_choices.h"
#include "ui/session/dialog_parts.h"
#include "ui/session/run_controller.h"

class QCheckBox;
class QStackedWidget;

namespace mw::ui {

class LaunchDialog : public TaskDialog {
  Q_OBJECT
 public:
  LaunchDialog(RunController& runs, std::filesystem::path resources, QWidget* parent = nullptr);
  void open_with(std::vector<NamedExperiment> experiments, int chosen);
  QVariantMap remembered() const;  // to restore at the next start; contains no secrets
  void remember(const QVariantMap& values);

  ExperimentChoice& experiment() { return *experiment_; }
  RecipeChoice& recipe() { return *recipe_; }
  QComboBox& where() { return *where_; }
  QLineEdit& host() { return *host_; }
  QLineEdit& field(const QString& name);  // of the chosen template
  QLineEdit& folder() { return *folder_; }
  QLineEdit& start() { return *start_; }
  QCheckBox& force() { return *force_; }

 public slots:
  void reject() override;  // cancels a launch in progress

 private:
  struct TemplateField {
    QString name;
    QLineEdit* line;
  };
  void build();
  void add_templates();
  void fit_place();
  QString target_text() const;
  void show_command();
  void show_state();
  void begin();

  RunController& runs_;
  std::filesystem::path resources_;
  std::vector<launch::TargetTemplate> templates_;
  std::vector<std::vector<TemplateField>> fields_;  // by template
  QLabel* command_;
  ExperimentChoice* experiment_;
  RecipeChoice* recipe_;
  QComboBox* where_;
  QStackedWidget* places_;
  QLineEdit *host_, *own_, *folder_, *start_;
  QCheckBox* force_;
  bool waiting_ = false;
};

// Dialog that follows a run which another program is making: a file, pipe or URL of event lines, a vLLM server, or a
// log folder.
class AttachDialog : public TaskDialog {
  Q_OBJECT
 public:
  explicit AttachDialog(RunController& runs, QWidget* parent = nullptr);
  QLineEdit& source() { return *source_; }
  QLineEdit& name() { return *name_; }

 public slots:
  void reject() override;  // stops an attempt in progress

 private:
  void build();
  void show_state();
  void begin();

  RunController& runs_;
  QLineEdit *source_, *name_;
  QLabel* command_;
  bool waiting_ = false;
};

}  // namespace mw::ui
