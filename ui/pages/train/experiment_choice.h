// SPDX-License-Identifier: GPL-3.0-or-later
// Which experiment a dialog is about, by name: that of the form, or that of a run as it was frozen at its start. GUI
// thread.
#pragma once
#include <QComboBox>
#include <vector>

#include "core/store/store.h"

namespace mw::ui {

struct NamedExperiment {
  QString name;  // "Form: tiny-lora.json", "run-3: Tiny LoRA"
  experiment::Experiment experiment;
  QString file{};      // as a command line names it
  store::RunId run{};  // empty: of the form
};

class ExperimentChoice : public QComboBox {
  Q_OBJECT
 public:
  explicit ExperimentChoice(QWidget* parent);
  // One at least. Emits currentIndexChanged only for choices of the user.
  void offer(std::vector<NamedExperiment> experiments, int chosen);
  const NamedExperiment& chosen() const { return experiments_.at(static_cast<size_t>(currentIndex())); }

 private:
  std::vector<NamedExperiment> experiments_;
};

}  // namespace mw::ui
