// SPDX-License-Identifier: GPL-3.0-or-later
// An experiment that a dialog offers: that of the form, or the frozen one of a run.
#pragma once
#include "ui/session/document.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

struct NamedExperiment {
  QString name;  // "Form: tiny-lora.json", "Run: run-3"
  experiment::Experiment experiment;
  QString file{};      // argument of the command line
  store::RunId run{};  // empty: from the form
};

NamedExperiment form_experiment(const Document& document);
NamedExperiment run_experiment(const RunData& run);

}  // namespace mw::ui
