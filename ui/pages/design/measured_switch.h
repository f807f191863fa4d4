// SPDX-License-Identifier: GPL-3.0-or-later
// In the canvas' place: the planned mesh, or the mesh of the run that is looked at as it was measured at the playhead.
// One click each way. GUI thread.
#pragma once
#include <QStackedWidget>

#include "ui/run_views/measured_mesh.h"

class QPushButton;

namespace mw::ui {

class MeasuredSwitch : public QStackedWidget {
  Q_OBJECT
 public:
  explicit MeasuredSwitch(QWidget* planned, QWidget* parent = nullptr);
  // The run the Train page shows; null or one device: nothing measured to offer, and the plan is shown.
  void show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot, MeasuredMesh::Held held);
  void show_measured(bool on);  // where there is something measured
  bool measured_shown() const { return currentIndex() == 1; }
  MeasuredMesh& measured() { return *measured_; }
  QPushButton& button() { return *button_; }  // for the page's header

 private:
  MeasuredMesh* measured_;
  QPushButton* button_;
  bool offered_ = false;
  QString run_name_;
};

}  // namespace mw::ui
