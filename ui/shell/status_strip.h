// SPDX-License-Identifier: GPL-3.0-or-later
// The line at the window's foot: what the document would need here (predicted), where that number comes from, and the
// job that goes.
#pragma once
#include <QStatusBar>

#include "ui/session/pricer.h"
#include "ui/session/run_controller.h"

class QLabel;
class QToolButton;

namespace mw::ui {

class ErrorLink;
class MemoryBar;

class StatusStrip : public QStatusBar {
  Q_OBJECT
 public:
  StatusStrip(Pricer& pricer, RunController& runs, QWidget* parent = nullptr);
  // What the page on screen is about: a price of the document's training says nothing about batch sizes.
  void set_about(RunKind kind);
  void set_errors(int errors);  // in the way of a prediction
  void refresh();
  void show_frame();
  QString price_text() const;
  QString origin_text() const;
  ErrorLink& error_link() { return *errors_; }  // in the price's place while nothing is predicted

 private:
  QString predicted_for();
  void say(const QString& text, const QColor& color);
  void show_nothing();
  void show_no_prediction();
  void show_figures(bool on);  // the bar and where the price comes from
  void show_prediction(const planning::Prediction& prediction);
  void show_design(const views::Design& design);
  Pricer& pricer_;
  RunController& runs_;
  RunKind about_ = RunKind::train;
  bool told_ = false;
  MemoryBar* bar_;
  QLabel *price_, *origin_, *job_;
  ErrorLink* errors_;
  QToolButton* why_;
  int error_count_ = 0;
};

}  // namespace mw::ui
