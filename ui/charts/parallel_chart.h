// SPDX-License-Identifier: GPL-3.0-or-later
// Parallel coordinates: a vertical axis for each setting and result, a line through them for each run. Pointing at a
// line, or the up and down keys, emphasise a run. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/parallel_axes.h"

namespace mw::ui {

class ParallelChart : public QWidget {
  Q_OBJECT
 public:
  explicit ParallelChart(QWidget* parent = nullptr);
  void show_runs(std::vector<views::ParallelAxis> axes, QStringList names);  // the colour of a run is series(its index)
  void set_emphasis(int run);                                                // -1: none
  int emphasis() const { return emphasis_; }
  const std::vector<views::ParallelAxis>& axes() const { return axes_; }
  QPointF point_of(int run, int axis) const;  // in widget coordinates; null: not recorded
  int run_at(QPointF at) const;               // -1: none
  QString summary() const;                    // of the emphasised run, or of all

  QSize sizeHint() const override { return {640, 220}; }
  QSize minimumSizeHint() const override { return {240, 140}; }

 signals:
  void run_hovered(int run);  // -1: left

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent*) override { hover(-1); }
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QRectF area() const;
  double axis_x(int axis) const;
  void paint_axis(QPainter& painter, int axis) const;
  void paint_run(QPainter& painter, int run) const;
  QString place_text(int run, const views::ParallelAxis& axis) const;
  void hover(int run);
  std::vector<views::ParallelAxis> axes_;
  QStringList names_;
  int emphasis_ = -1;
};

}  // namespace mw::ui
