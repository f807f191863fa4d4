// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/experiment_choice.h"

#include <QSignalBlocker>

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

}  // namespace mw::ui
