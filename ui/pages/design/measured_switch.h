// SPDX-License-Identifier: GPL-3.0-or-later
// Switches between the planned mesh and the measured mesh of the displayed run at the playhead. GUI thread.
#pragma once
#include <QStackedWidget>

#include "ui/run_views/measured_mesh.h"

class QPushButton;

namespace mw::ui {

class MeasuredSwitch : public QStackedWidget {
  Q_OBJECT
 public:
  explicit MeasuredSwitch(QWidget* planned, QWidget* parent = nullptr);
  // `run`: that of the Train page. If it is null or has one device, only the plan is available.
  void show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot, MeasuredMesh::PlayheadMode mode);
  void show_measured(bool on);  // does nothing without a measured mesh
  bool is_measured_shown() const { return currentIndex() == 1; }
  MeasuredMesh& measured() { return *measured_; }
  QPushButton& button() { return *button_; }  // placed in the header of the page

 private:
  MeasuredMesh* measured_;
  QPushButton* button_;
  bool offered_ = false;
  QString run_name_;
};

}  // namespace mw::ui
