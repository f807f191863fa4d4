// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/dialog_choices.h"

#include <algorithm>

#include "ui/theme/text.h"

namespace mw::ui {

ExperimentChoice::ExperimentChoice(QWidget* parent) : QComboBox(parent) {
  setObjectName(QStringLiteral("experiment_choice"));
  setAccessibleName(tr("Experiment"));
  setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  offer({NamedExperiment{}}, 0);
}

void ExperimentChoice::offer(std::vector<NamedExperiment> experiments, int chosen) {
  const QSignalBlocker quiet(this);
  experiments_ = std::move(experiments);
  clear();
  for (const NamedExperiment& e : experiments_) addItem(e.name);
  setCurrentIndex(chosen);
}

RecipeChoice::RecipeChoice(QWidget* parent) : QComboBox(parent) {
  setAccessibleName(tr("Recipe"));
  for (const model::Stack kind : recipes::kRecipes)
    addItem(tr("%1: %2").arg(qs(model::to_string(kind)), qs(recipes::description(kind))), qs(model::to_string(kind)));
}

model::Stack RecipeChoice::kind() const {
  return recipes::parse_recipe(ss(name()));
}

void RecipeChoice::suit(const experiment::Experiment& experiment) {
  const bool training = kind_of(experiment) == RunKind::train;
  if (model::serves(kind()) != training) return;
  for (const model::Stack kind : recipes::kRecipes)
    if (model::serves(kind) != training) return choose(qs(model::to_string(kind)));
}

void RecipeChoice::choose(const QString& name) {
  setCurrentIndex(std::max(0, findData(name)));
}

}  // namespace mw::ui

#include "moc_dialog_choices.cpp"
