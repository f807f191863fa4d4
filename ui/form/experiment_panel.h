// SPDX-License-Identifier: GPL-3.0-or-later
// The Experiment dock: form, JSON text and command line of the document. GUI thread.
#pragma once
#include <QWidget>

#include "ui/form/command_view.h"
#include "ui/form/form.h"
#include "ui/form/json_view.h"

class QTabWidget;

namespace mw::ui {

class ExperimentPanel : public QWidget {
  Q_OBJECT
 public:
  ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent = nullptr);
  Form& form() { return *form_; }
  JsonView& json() { return *json_; }
  void show_form();
  void show_json();
  void show_command();
  void set_command(const QString& command);  // of the command line: "run" or "size"
  void go_to(const Problem& problem);        // focuses the field, or the line of the JSON text

 private:
  QTabWidget* tabs_;
  Form* form_;
  JsonView* json_;
  CommandView* command_;
};

}  // namespace mw::ui
