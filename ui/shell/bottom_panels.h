// SPDX-License-Identifier: GPL-3.0-or-later
// The Log and Jobs docks at the bottom. GUI thread.
#pragma once
#include <QPlainTextEdit>
#include <QWidget>

#include "ui/session/action_registry.h"
#include "ui/session/run_controller.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace mw::ui {

// The log of the displayed run, oldest line first; follows the newest line unless the user has scrolled.
class LogPanel : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit LogPanel(QWidget* parent = nullptr);
  void show_run(RunPtr run);
  void grow();

 private:
  RunPtr run_;
  size_t shown_ = 0;  // lines shown so far, including dropped ones
};

class JobsPanel : public QWidget {
  Q_OBJECT
 public:
  JobsPanel(RunController& runs, ActionRegistry& actions, QWidget* parent = nullptr);
  void show_frame();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  RunController& runs_;
  QLabel *idle_, *name_, *steps_, *eta_;
  QProgressBar* bar_;
  QPushButton *pause_, *stop_, *show_;
  QWidget* row_;
};

}  // namespace mw::ui
