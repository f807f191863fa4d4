// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse, wheel and keys of a chart: pan, zoom, cursor and playhead of its link. GUI thread.
#pragma once
#include "ui/charts/chart_axes.h"

class QEvent;
class QKeyEvent;
class QMouseEvent;
class QWheelEvent;

namespace mw::ui {

class ChartGestures {
 public:
  ChartGestures(const ChartAxes& axes, ChartLink& link) : axes_(axes), link_(link) {}
  bool handle(QEvent& event);  // false: the event is another one

 private:
  void move(const QMouseEvent& event);
  void press(const QMouseEvent& event);
  void release(const QMouseEvent& event);
  void turn(QWheelEvent& event);
  bool press_key(const QKeyEvent& event);
  bool press_row_key(const QKeyEvent& event);
  void show_newest();
  const ChartAxes& axes_;
  ChartLink& link_;
  bool dragging_ = false, moved_ = false;
  QPointF pressed_at_;
  AxisRange pressed_range_;
};

}  // namespace mw::ui
