// SPDX-License-Identifier: GPL-3.0-or-later
// Counted traffic between the devices of a run in each step: bytes or seconds, by cause, kind or axis. GUI thread.
#pragma once
#include <QWidget>

#include "ui/charts/chart.h"
#include "ui/session/run_controller.h"

class QComboBox;

namespace mw::ui {

class CollectivesPanel : public QWidget {
  Q_OBJECT
 public:
  explicit CollectivesPanel(ChartLink& by_step, QWidget* parent = nullptr);
  void show_run(const RunPtr& run);
  void choose(views::TrafficBy by, views::TrafficAmount amount);
  Chart& bytes() { return *bytes_; }
  Chart& seconds() { return *seconds_; }
  Chart& shown();
  QComboBox& amount() { return *amount_; }
  QComboBox& by() { return *by_; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void draw();
  RunPtr run_;
  Chart *bytes_, *seconds_;
  QComboBox *amount_, *by_;
};

}  // namespace mw::ui
