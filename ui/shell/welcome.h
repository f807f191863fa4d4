// SPDX-License-Identifier: GPL-3.0-or-later
// A panel over the page at the first start: offers three jobs and shows the progress of the example run. GUI thread.
#pragma once
#include <QFrame>

#include "ui/session/run_controller.h"

class QCheckBox;
class QLabel;

namespace mw::ui {

enum class Job { design_mesh, watch_run, compare_sweeps };

class Welcome : public QFrame {
  Q_OBJECT
 public:
  Welcome(RunController& runs, QWidget* window);
  void open();
  void show_frame();
  QCheckBox& again() { return *again_; }

 signals:
  void chosen(mw::ui::Job job);
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

}  // namespace mw::ui
