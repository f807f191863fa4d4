// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the virtual devices of a run at the playhead: memory by category in each device, traffic along each mesh axis
// on the edges. Measured values are solid, predictions beside them dashed; differences are marked. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/design_view.h"
#include "core/views/step_snapshot.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

class MeasuredMesh : public QWidget {
  Q_OBJECT
 public:
  enum class PlayheadMode { newest, held, hovered };  // how the position of the playhead is determined
  explicit MeasuredMesh(QWidget* parent = nullptr);
  void show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot, PlayheadMode mode);
  void select_device(int device);

  const views::StepSnapshot& snapshot() const { return snapshot_; }
  const views::DeviceGrid& grid() const { return grid_; }
  int selected() const { return selected_; }
  QString caption() const;  // "run-12, step 40, live"
  QString axis_text(const views::AxisTraffic& axis) const;
  static QString planned_text(const views::TrafficTotals& flow);  // "planned 30.0 MiB"; empty if unknown
  QString device_text(int device) const;
  QString summary() const;
  QRectF device_at(int device) const;

  QSize sizeHint() const override { return {440, 220}; }
  QSize minimumSizeHint() const override { return {200, 96}; }

 signals:
  void device_selected(int device);

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Frame {  // areas of the widget
    QRectF header, devices, lines;
  };
  Frame frame() const;
  int device_under(QPointF at) const;     // -1: none
  QString memory_text(int device) const;  // for the tooltip; empty: no device
  const views::DeviceSnapshot* of_device(int device) const;
  const views::AxisTraffic* of_axis(int axis) const;
  QColor axis_color(int axis) const;
  double bar_whole() const;
  void paint_header(QPainter& painter, const QRectF& box) const;
  void paint_edges(QPainter& painter) const;
  void paint_labels(QPainter& painter) const;
  void paint_device(QPainter& painter, int device) const;
  void paint_bar(QPainter& painter, const QRectF& rail, const views::DeviceSnapshot& device) const;
  void paint_lines(QPainter& painter, QRectF box) const;
  void paint_axis(QPainter& painter, QRectF line, const views::AxisTraffic& axis, const QColor& color) const;
  double edge_width(int axis) const;
  static constexpr double kTextLine = 16;

  RunPtr run_;
  mesh::Mesh mesh_;
  views::DeviceGrid grid_;
  views::StepSnapshot snapshot_;
  PlayheadMode mode_ = PlayheadMode::newest;
  int selected_ = -1;
};

// The mesh of the Started event, which may differ after a resume, otherwise that of the frozen experiment.
mesh::Mesh mesh_of(const RunData& run);
bool on_a_mesh(const RunPtr& run);  // of more than one device

}  // namespace mw::ui
