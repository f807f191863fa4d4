// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/experiment_panel.h"

#include <QTabBar>

namespace mw::ui {

ExperimentPanel::ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent)
    : QTabWidget(parent),
      form_(new Form(document)),
      json_(new JsonView(document)),
      command_(new CommandView(document, runs_folder)) {
  setDocumentMode(true);
  addTab(form_, tr("Form"));
  addTab(json_, tr("JSON"));
  addTab(command_, tr("Command"));
  tabBar()->setAccessibleName(tr("Views of the experiment"));
  setAccessibleName(tr("Experiment"));
  setMinimumWidth(290);
}

void ExperimentPanel::go_to(const Problem& problem) {
  if (problem.id != "JSON" && form_->row(problem.place)) {
    show_form();
    form_->focus_key(problem.place);
    return;
  }
  show_json();
  json_->focus_place(problem.place);
}

}  // namespace mw::ui
