// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the axes and the data of a chart with Qt Charts. GUI thread.
#pragma once
#include <QBrush>
#include <QGraphicsScene>
#include <QPen>
#include <QPointF>

#include "ui/charts/chart_data.h"

class QAreaSeries;
class QCategoryAxis;
class QChart;
class QLineSeries;
class QScatterSeries;

namespace mw::ui {

struct SceneAxis {
  AxisRange range{};
  std::vector<Tick> ticks{};  // inside the range
  QString title{};            // with the unit
};

struct SceneArea {
  QList<QPointF> upper{}, lower{};
  QBrush brush{};
};

struct SceneLine {
  QList<QPointF> points{};  // NaN in y: a gap
  QPen pen{};
};

struct SceneMarks {
  QList<QPointF> points{};
  Marks shape = Marks::points;
  QColor color{};
};

// The content of a chart. Areas are below lines, and lines below marks; each in its order.
struct SceneItems {
  SceneAxis x{}, y{};
  std::vector<SceneArea> areas{};
  std::vector<SceneLine> lines{};
  std::vector<SceneMarks> marks{};
  std::vector<double> cut_bars{};  // middles of bars that end beyond the y axis
};

// Keeps its series from picture to picture and replaces their points: QXYSeries::append() lays the whole line out
// again for each point (qtcharts/src/charts/xychart/qxyseries.cpp, 6.4).
class ChartScene {
 public:
  ChartScene();
  // `area`: where the data is, inside `size`; axis labels and titles are beside it.
  void update(SceneItems items, QSizeF size, const QRectF& area);
  void paint(QPainter& painter);

 private:
  bool set_axis(QCategoryAxis& axis, std::vector<Tick>& shown, const SceneAxis& wanted);
  bool reserve(size_t areas, size_t lines, size_t marks);

  QGraphicsScene scene_;
  QChart* chart_;  // in the scene, which owns it
  QCategoryAxis *x_, *y_;
  std::vector<Tick> x_ticks_, y_ticks_;
  QRectF area_;  // of the last layout
  std::vector<QAreaSeries*> areas_;
  std::vector<QLineSeries*> lines_;
  std::vector<QScatterSeries*> marks_;
};

}  // namespace mw::ui
