// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the outputs for held-out prompts by step, newest first. GUI thread.
#pragma once
#include <QCoreApplication>

#include "ui/session/run_controller.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class SamplesModel : public TableModel<views::SampleShown> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::SamplesModel)
 public:
  enum Column { step, verdict, prompt, answer, expected };
  SamplesModel();
  void show_run(RunPtr run);
  void grow();  // rows were added (or the run rewound)
  const views::SampleShown& row(int at) const override;
  long step_of(int at) const { return row(at).step; }

 private:
  int size() const override { return shown_; }
  RunPtr run_;
  int shown_ = 0;
};

}  // namespace mw::ui
