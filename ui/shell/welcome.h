// SPDX-License-Identifier: GPL-3.0-or-later
// A panel over the page at the first start: offers three jobs and shows the progress of the example run. GUI thread.
#pragma once
#include "ui/session/run_controller.h"
#include "ui/theme/widgets.h"

class QCheckBox;

namespace mw::ui {

enum class WelcomeTask { design_mesh, watch_run, compare_sweeps };

class Welcome : public QFrame {
  Q_OBJECT
 public:
  Welcome(RunController& runs, QWidget* window);
  void open();
  void show_frame();
  QCheckBox& again() { return *again_; }

 signals:
  void chosen(mw::ui::WelcomeTask job);
  void closed(bool again);  // whether it is to be shown at the next start

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void leave();
  void place();
  RunController& runs_;
  QLabel* run_;
  QCheckBox* again_;
};

class ActionRegistry;

void show_shortcuts(QWidget& window, const ActionRegistry& actions);  // of all commands
void show_about(QWidget& window);

}  // namespace mw::ui
