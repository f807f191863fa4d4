// SPDX-License-Identifier: GPL-3.0-or-later
// The line above the charts: state, name, step, progress, speed and ETA of a run, and a button to show the live run.
// GUI thread.
#pragma once
#include "ui/session/run_controller.h"
#include "ui/theme/widgets.h"

class QProgressBar;

namespace mw::ui {

QString state_text(RunState state);
// "step 412 of 1200", "point 3 of 15", "ETA 1:42": shared by header, jobs panel and status strip.
QString steps_text(const views::RunView& view);
QString eta_text(const views::RunView& view);
// Shows them in labels whose widths depend on the run, not on its progress, so that nothing beside them moves.
void show_steps_and_eta(QLabel& steps, QLabel& eta, const views::RunView& view);
// Sets range, value and the state that determines the colour.
void show_progress(QProgressBar& bar, const views::RunView& view);

class RunHeader : public QFrame {
  Q_OBJECT
 public:
  RunHeader(RunController& runs, QWidget* parent);
  void show_run(const RunPtr& run, RunKind kind);  // null: none

 private:
  void fill(const RunData& run, bool stopping);
  void ask_for_name(const RunData& run);
  void show_name();

  RunController& runs_;
  store::RunId named_;  // the run whose name is distinct_name_
  QString distinct_name_;
  QFrame* line_;
  QPushButton* back_;
  QLabel* state_;
  ElidedLabel *name_, *activity_;
  QLabel *steps_, *speed_, *eta_;
  QProgressBar* bar_;
};

}  // namespace mw::ui
