// SPDX-License-Identifier: GPL-3.0-or-later
// Drawing of lines and marks of a Chart, in the data and in the legend.
#pragma once
#include <QPainter>

#include "ui/charts/chart_data.h"

namespace mw::ui {

// Lower charts have no axis titles: Qt Charts gives an axis at most 40 % of the height and would elide them.
inline constexpr int kTitledHeight = 120;

inline Qt::PenStyle pen_style(LineOrigin origin) {
  switch (origin) {
    case LineOrigin::measured:
      return Qt::SolidLine;
    case LineOrigin::predicted:
      return Qt::DashLine;
    case LineOrigin::imported:
      return Qt::DotLine;
    case LineOrigin::requested:
      return Qt::DashDotLine;
  }
  return Qt::SolidLine;
}

inline QColor faded(QColor color, double alpha) {
  color.setAlphaF(static_cast<float>(alpha));
  return color;
}

inline void paint_mark(QPainter& painter, Marks shape, QPointF at) {
  if (shape == Marks::squares)
    painter.drawRect(QRectF(at.x() - 3, at.y() - 3, 6, 6));
  else if (shape == Marks::triangles)
    painter.drawPolygon(QPolygonF{at + QPointF(0, -4.2), at + QPointF(4, 3), at + QPointF(-4, 3)});
  else if (shape == Marks::diamonds)
    painter.drawPolygon(
        QPolygonF{at + QPointF(0, -4.4), at + QPointF(4.4, 0), at + QPointF(0, 4.4), at - QPointF(4.4, 0)});
  else
    painter.drawEllipse(at, 3.2, 3.2);
}

}  // namespace mw::ui
