// SPDX-License-Identifier: GPL-3.0-or-later
// The Experiment dock: form, JSON text and command line of the document. GUI thread.
#pragma once
#include <QTabWidget>

#include "ui/form/command_view.h"
#include "ui/form/form.h"
#include "ui/form/json_view.h"

namespace mw::ui {

class ExperimentPanel : public QTabWidget {
  Q_OBJECT
 public:
  ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent = nullptr);
  Form& form() { return *form_; }
  JsonView& json() { return *json_; }
  CommandView& command() { return *command_; }
  void show_form() { setCurrentWidget(form_); }
  void show_json() { setCurrentWidget(json_); }
  void show_command() { setCurrentWidget(command_); }
  void go_to(const Problem& problem);  // focuses the field, or the line of the JSON text

 private:
  Form* form_;
  JsonView* json_;
  CommandView* command_;
};

}  // namespace mw::ui
