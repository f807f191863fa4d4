// SPDX-License-Identifier: GPL-3.0-or-later
// Selects a recipe from a list with descriptions. GUI thread.
#pragma once
#include <QComboBox>

#include "core/experiment/experiment.h"
#include "core/recipes/recipe.h"

namespace mw::ui {

class RecipeChoice : public QComboBox {
  Q_OBJECT
 public:
  explicit RecipeChoice(QWidget* parent);
  recipes::Kind kind() const;
  QString name() const { return currentData().toString(); }
  void choose(const QString& name);  // unknown name: the first
  // If the chosen recipe cannot run this kind of experiment, selects the first one that can.
  void suit(const experiment::Experiment& experiment);
};

}  // namespace mw::ui
