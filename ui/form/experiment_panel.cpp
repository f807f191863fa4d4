// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/experiment_panel.h"

#include <QTabBar>
#include <QTabWidget>
#include <QVBoxLayout>

#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

ExperimentPanel::ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent)
    : QWidget(parent),
      tabs_(new QTabWidget(this)),
      form_(new Form(document)),
      json_(new JsonView(document)),
      command_(new CommandView(document, runs_folder)) {
  auto* column = flush_layout<QVBoxLayout>(this);
  column->addWidget(tabs_);
  tabs_->setDocumentMode(true);
  tabs_->addTab(form_, tr("Form"));
  tabs_->addTab(json_, tr("JSON"));
  tabs_->addTab(command_, tr("Command"));
  tabs_->tabBar()->setAccessibleName(tr("Views of the experiment"));
  tabs_->setAccessibleName(tr("Experiment"));
  setMinimumWidth(290);
}

void ExperimentPanel::show_form() {
  tabs_->setCurrentWidget(form_);
}
void ExperimentPanel::show_json() {
  tabs_->setCurrentWidget(json_);
}
void ExperimentPanel::set_command(const QString& command) {
  command_->set_command(command);
}

void ExperimentPanel::show_command() {
  tabs_->setCurrentWidget(command_);
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
