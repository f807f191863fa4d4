// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/experiment_panel.h"

#include <QTabBar>

namespace mw::ui {
namespace {
constexpr int kNarrowest = 260, kRailWidth = 34;
}

ExperimentPanel::ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent)
    : QWidget(parent),
      tabs_(new QTabWidget(this)),
      rail_(new QWidget(this)),
      form_(new Form(document)),
      json_(new JsonView(document)),
      command_(new CommandView(document, runs_folder)) {
  auto* row = flush_layout<QHBoxLayout>(this, 0);
  row->addWidget(rail_);
  row->addWidget(tabs_, 1);
  tabs_->setDocumentMode(true);
  tabs_->addTab(form_, tr("Form"));
  tabs_->addTab(json_, tr("JSON"));
  tabs_->addTab(command_, tr("Command"));
  tabs_->tabBar()->setAccessibleName(tr("Views of the experiment"));
  tabs_->setAccessibleName(tr("Experiment"));
  build_rail();
  set_state(PanelState::open);
}

void ExperimentPanel::build_rail() {
  rail_->setObjectName(u"panelBody"_s);
  rail_->setAttribute(Qt::WA_StyledBackground);
  auto* column = make_layout<QVBoxLayout>(rail_, {3, 4, 3, 4}, 6);
  const auto add = [&](Glyph glyph, const QString& help, QWidget* view) {
    QToolButton* button = flat_button(glyph, help, rail_);
    button->setToolTip(help);
    button->setFixedSize(kRailWidth - 6, kRailWidth - 6);
    column->addWidget(button);
    connect(button, &QToolButton::clicked, this, [this, view] {
      if (view) tabs_->setCurrentWidget(view);
      emit state_wanted(PanelState::open);
    });
  };
  add(Glyph::unfold, tr("Open the experiment panel (Alt+0)"), nullptr);
  add(Glyph::form, tr("Show the form"), form_);
  add(Glyph::json, tr("Show the JSON"), json_);
  add(Glyph::command, tr("Show the command line"), command_);
  column->addStretch(1);
  QToolButton* fold = flat_button(Glyph::fold, tr("Fold the experiment panel"), tabs_);
  fold->setToolTip(tr("Fold the experiment panel (Alt+0)"));
  tabs_->setCornerWidget(fold);
  connect(fold, &QToolButton::clicked, this, [this] { emit state_wanted(PanelState::folded); });
}

void ExperimentPanel::set_state(PanelState state) {
  const bool folded = state == PanelState::folded;
  rail_->setVisible(folded);
  tabs_->setVisible(!folded);
  setMinimumWidth(folded ? kRailWidth : kNarrowest);
  setMaximumWidth(folded ? kRailWidth : QWIDGETSIZE_MAX);
}

void ExperimentPanel::show_tab(int tab) {
  tabs_->setCurrentIndex(tab);
  if (state() == PanelState::folded) emit state_wanted(PanelState::open);
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

#include "moc_experiment_panel.cpp"
