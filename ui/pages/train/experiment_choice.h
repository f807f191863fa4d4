// SPDX-License-Identifier: GPL-3.0-or-later
// Selects the experiment of a dialog: that of the form, or the frozen one of a run. GUI thread.
#pragma once
#include <QComboBox>
#include <vector>

#include "ui/session/named_experiment.h"

namespace mw::ui {

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

}  // namespace mw::ui
