// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of a run over time: of the largest device, a chosen one, or all devices. GUI thread.
#pragma once
#include <QWidget>

#include "ui/charts/chart.h"
#include "ui/pages/train/memory_grid.h"

class QComboBox;
class QStackedWidget;

namespace mw::ui {

class DeviceMemory : public QWidget {
  Q_OBJECT
 public:
  explicit DeviceMemory(ChartLink& by_time, QWidget* parent = nullptr);
  void show_run(const RunPtr& run);  // also call it if the same run gained a device or was replaced
  void choose(int device);           // kLargest, kAll, or one
  int chosen() const { return chosen_; }
  int device() const { return device_; }  // shown in the chart
  Chart& chart() { return *chart_; }
  MemoryGrid& grid() { return *grid_; }
  QComboBox& selector() { return *selector_; }

  static constexpr int kLargest = -1, kAll = -2;

 signals:
  void device_changed(int device);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fill_selector();
  void show_chosen();
  void place_selector();
  RunPtr run_;
  int chosen_ = kLargest, device_ = 0;
  std::vector<int> offered_;
  QStackedWidget* stack_;
  Chart* chart_;
  MemoryGrid* grid_;
  QComboBox* selector_;
};

}  // namespace mw::ui
