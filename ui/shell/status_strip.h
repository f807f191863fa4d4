// SPDX-License-Identifier: GPL-3.0-or-later
// The status bar: predicted memory or design figures of the document with their sources, and the live run. GUI thread.
#pragma once
#include <QStatusBar>

#include "ui/session/predictor.h"
#include "ui/session/run_controller.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

class MemoryBar;

class StatusStrip : public QStatusBar {
  Q_OBJECT
 public:
  StatusStrip(Predictor& predictor, RunController& runs, QWidget* parent = nullptr);
  // Kind of run that the current page shows; predictions for training do not apply to batch sizes.
  void set_kind(RunKind kind);
  void set_errors(int errors);  // that prevent a prediction
  void refresh();
  void show_frame();
  QString figures_text() const;
  QString origin_text() const;
  QToolButton& measure_button() { return *measure_; }  // shown with times of this machine that were not measured on it
  ErrorLink& error_link() { return *errors_; }         // replaces the figures if there is no prediction

 private:
  QString predicted_for();
  void show_text(const QString& text, const QColor& color);
  void show_nothing();
  void show_no_prediction();
  void show_figures(bool on);  // shows or hides the memory bar and the sources
  void show_design(const views::Design& design);
  Predictor& predictor_;
  RunController& runs_;
  RunKind kind_ = RunKind::train;
  bool prediction_known_ = false;
  MemoryBar* bar_;
  QLabel *figures_, *origin_, *job_, *steps_, *eta_;
  ErrorLink* errors_;
  QToolButton *sources_, *measure_;
  int error_count_ = 0;
};

}  // namespace mw::ui
