// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of a run over time, by device. GUI thread.
#pragma once
#include "ui/charts/chart.h"
#include "ui/charts/chart_link.h"
#include "ui/session/run_controller.h"

class QComboBox;
class QStackedWidget;

namespace mw::ui {

// Memory of every device of a run as small stacked timelines on one scale, with capacity and prediction. Shows the
// playhead; a click moves it and selects the device.
class MemoryGrid : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryGrid(ChartLink& by_time, QWidget* parent = nullptr);
  void show_run(const RunPtr& run);
  void refresh();                   // call it when the run has new data
  QRectF cell(int index) const;     // of the index-th device that reported
  int device_at(QPointF at) const;  // -1: none
  QString summary() const;

 signals:
  void device_chosen(int device);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void paint_still(QPainter& painter) const;
  void paint_cell(QPainter& painter, const QRectF& area, int device, const views::MemoryTimeline& memory) const;
  void paint_level(QPainter& painter, const QRectF& area, double y, const QColor& color, Qt::PenStyle style) const;
  QRectF plot_area(int index) const;
  double time_at(int index, double pixel) const;
  double to_x(const QRectF& area, double time_s) const;
  int columns() const;
  double highest() const;
  ChartLink& link_;
  RunPtr run_;
  QPixmap cache_;
  bool stale_ = true;
};

// The largest device, a chosen one, or all devices.
class DeviceMemoryView : public QWidget {
  Q_OBJECT
 public:
  explicit DeviceMemoryView(ChartLink& by_time, QWidget* parent = nullptr);
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
