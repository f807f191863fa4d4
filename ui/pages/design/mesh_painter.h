// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the mesh canvas: chips, links and their traffic, the sides, the selected tensor and the callout. GUI thread.
#pragma once
#include <QLineF>
#include <QVector>

#include "ui/pages/design/axis_edit.h"

class QPainter;

namespace mw::ui {

class MeshPainter {
 public:
  MeshPainter(const QWidget& canvas, const CanvasState& state, const CanvasGeometry& geometry, const AxisEdit& edit)
      : canvas_(canvas), state_(state), geometry_(geometry), edit_(edit) {}
  // Everything but hover, selection and callout. `caption`: its place; `lit`: axes whose links are shown.
  void paint_still(QPainter& painter, const QRectF& caption, const QStringList& lit) const;
  void paint_selection(QPainter& painter) const;
  // `text` points at `anchor`, unless that is null; without text it shows the status of a device.
  void paint_callout(QPainter& painter, const QString& text, const QRect& anchor, Editing editing) const;

 private:
  void paint_sides(QPainter& painter) const;
  void paint_network(QPainter& painter) const;
  void paint_links(QPainter& painter) const;
  void paint_chips(QPainter& painter) const;
  void paint_device(QPainter& painter, int device) const;
  void paint_edges(QPainter& painter, const QStringList& lit) const;
  void draw_edge(QPainter& painter, const designer::CanvasEdge& edge, QVector<QLineF>& lines) const;
  void paint_labels(QPainter& painter) const;
  void paint_tensor(QPainter& painter) const;
  void paint_dimensions(QPainter& painter) const;
  const QWidget& canvas_;
  const CanvasState& state_;
  const CanvasGeometry& geometry_;
  const AxisEdit& edit_;
};

}  // namespace mw::ui
