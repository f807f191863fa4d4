// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of every device of a run as small stacked timelines on one scale, with capacity and prediction. Shows the
// playhead; a click moves it and selects the device. GUI thread.
#pragma once
#include <QPixmap>
#include <QWidget>

#include "ui/charts/chart_link.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

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

}  // namespace mw::ui
