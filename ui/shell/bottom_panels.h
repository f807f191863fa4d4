// SPDX-License-Identifier: GPL-3.0-or-later
// The docks at the bottom: Problems, Log, Jobs.
#pragma once
#include <QPlainTextEdit>
#include <QTableView>
#include <QWidget>

#include "ui/shell/problems_model.h"
#include "ui/train/run_controller.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace mw::ui {

class ProblemsPanel : public QTableView {
  Q_OBJECT
 public:
  ProblemsPanel(ProblemsModel& model, QWidget* parent = nullptr);

 signals:
  void chosen(const mw::Problem& problem);  // click or Enter

 protected:
  void paintEvent(QPaintEvent* event) override;
};

// The log of the run that is looked at, oldest first; follows the newest line unless scrolled away.
class LogPanel : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit LogPanel(QWidget* parent = nullptr);
  void show_run(RunPtr run);
  void grow();

 private:
  RunPtr run_;
  size_t shown_ = 0;  // lines of the run written so far, dropped ones included
};

class JobsPanel : public QWidget {
  Q_OBJECT
 public:
  JobsPanel(RunController& runs, QWidget* parent = nullptr);
  void show_frame();

 signals:
  void pause_wanted();
  void stop_wanted();
  void look_wanted();

 private:
  RunController& runs_;
  QLabel *idle_, *name_, *steps_, *eta_;
  QProgressBar* bar_;
  QPushButton *pause_, *stop_, *look_;
  QWidget* row_;
};

}  // namespace mw::ui
