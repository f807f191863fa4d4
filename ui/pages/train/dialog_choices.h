// SPDX-License-Identifier: GPL-3.0-or-later
// The boxes that choose the experiment and the recipe of a dialog. GUI thread.
#pragma once
#include <QComboBox>
#include <vector>

#include "core/recipes/recipe.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

// The experiment of the form, or the frozen one of a run.
class ExperimentChoice : public QComboBox {
  Q_OBJECT
 public:
  explicit ExperimentChoice(QWidget* parent);
  // At least one entry. Emits currentIndexChanged only if the user changes the choice.
  void offer(std::vector<NamedExperiment> experiments, int chosen);
  const NamedExperiment& chosen() const { return experiments_.at(static_cast<size_t>(currentIndex())); }

 private:
  std::vector<NamedExperiment> experiments_;
};

// A recipe from a list with descriptions.
class RecipeChoice : public QComboBox {
  Q_OBJECT
 public:
  explicit RecipeChoice(QWidget* parent);
  model::Stack kind() const;
  QString name() const { return currentData().toString(); }
  void choose(const QString& name);  // unknown name: the first
  // If the chosen recipe cannot run this kind of experiment, selects the first one that can.
  void suit(const experiment::Experiment& experiment);
};

}  // namespace mw::ui
