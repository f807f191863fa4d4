// SPDX-License-Identifier: GPL-3.0-or-later
// What a chart is given to draw. Measured, predicted and imported never share a line style. The pointers keep the run
// they belong to alive.
#pragma once
#include <QColor>
#include <QString>
#include <functional>
#include <memory>
#include <vector>

#include "core/views/series.h"
#include "ui/plot/ticks.h"

namespace mw::ui {

// Solid, dashed, dotted; dash and dot: no result at all but what was asked for.
enum class Origin { measured, predicted, imported, asked };
enum class Marks { none, points, squares, triangles, diamonds };  // few samples, each drawn; shapes tell lines apart

struct PlotFlag {  // something is wrong with the sample there; the text says what when it is pointed at
  double x = 0, y = 0;
  QColor color{};
  QString text{};
};

struct PlotLine {
  QString name{};
  QColor color{};
  std::shared_ptr<const views::Series> raw{}, smooth{};  // smooth may be null: then raw is the line
  Origin origin = Origin::measured;
  Marks marks = Marks::none;
  std::shared_ptr<const views::Series> low{}, high{};  // a band around it: an interval, or up to a percentile
  std::vector<views::Point> path{};                    // how samples are connected, where that is not the order of x
  std::vector<PlotFlag> flags{};
  int group = -1;  // lines of one thing are lit together, in all charts
};

// Areas on top of each other; values[layer][i] belongs to x[i].
struct Stack {
  std::vector<double> x;
  std::vector<std::vector<double>> values;
};
enum class Shape { areas, bars };
struct PlotStack {
  std::vector<std::pair<QString, QColor>> layers;  // bottom first
  std::function<Stack(double x0, double x1, int columns)> sample;
  std::function<std::vector<double>(double x)> at;  // the split at a cursor; empty where there is none
  std::function<double(double x0, double x1)> highest;
  Shape shape = Shape::areas;
  double bar_width = 0;  // each bar fills [x, x + bar_width]; 0: bars stand at places of their own
  std::function<std::vector<double>()> overall{};  // what the legend says while nothing is pointed at; none: the last
  std::function<Origin(double x)> origin{};        // of the split at x; none: all of it is measured
  Origin origin_at(double x) const { return origin ? origin(x) : Origin::measured; }
};

struct PlotNote {  // a cross above the x axis: there is no value here, and the chart's caption says why
  double x = 0;
  QColor color{};
};

struct LevelLine {  // a horizontal line: capacity, prediction; or an upright one: a limit of x
  QString name{};
  double value = 0;
  QColor color{};
  Origin origin = Origin::measured;
  QString text{};  // in place of the value
};

}  // namespace mw::ui
