// SPDX-License-Identifier: GPL-3.0-or-later
// Every recipe with what it is for, as a list to choose from. GUI thread.
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
  void choose(const QString& name);  // an unknown one: the first
  // Chooses the first recipe that can carry out this experiment where the chosen one cannot: training or serving.
  void suit(const experiment::Experiment& experiment);
};

}  // namespace mw::ui
