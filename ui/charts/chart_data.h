// SPDX-License-Identifier: GPL-3.0-or-later
// The data of a chart. Measured, predicted and imported data have different line styles. The pointers keep their run
// alive.
#pragma once
#include <QColor>
#include <functional>
#include <memory>
#include <set>

#include "core/views/series.h"
#include "ui/charts/ticks.h"

namespace mw::ui {

// Solid, dashed, dotted; dash-dot: a requested value, not a result.
enum class LineOrigin { measured, predicted, imported, requested };
enum class Marks { none, points, squares, triangles, diamonds };  // for few samples; shapes distinguish lines

struct ChartFlag {  // marks a questionable sample; the text is shown on hover
  double x = 0, y = 0;
  QColor color{};
  QString text{};
};

struct ChartLine {
  QString name{};
  QColor color{};
  std::shared_ptr<const views::Series> raw{}, smooth{};  // smooth may be null: then raw is drawn
  LineOrigin origin = LineOrigin::measured;
  Marks marks = Marks::none;
  std::shared_ptr<const views::Series> low{}, high{};  // a band: an interval, or up to a percentile
  std::vector<views::Point> path{};                    // order of connection if it is not that of x
  std::vector<ChartFlag> flags{};
  int group = -1;  // lines of a group are emphasised together in all charts
};

// Stacked areas; values[layer][i] belongs to x[i].
struct StackSamples {
  std::vector<double> x;
  std::vector<std::vector<double>> values;
  std::vector<double> start{};  // where the bottom layer begins, by x; empty: at zero
};
enum class Shape { areas, bars };
struct ChartStack {
  std::vector<std::pair<QString, QColor>> layers;  // bottom first
  std::function<StackSamples(double x0, double x1, int columns)> sample;
  std::function<std::vector<double>(double x)> at;  // the layers at a cursor; empty: none there
  std::function<double(double x0, double x1)> highest;
  Shape shape = Shape::areas;
  double bar_width = 0;                            // each bar fills [x, x + bar_width]; 0: bars at named positions
  std::function<std::vector<double>()> overall{};  // legend values without a cursor; none: the last ones
  std::function<LineOrigin(double x)> origin{};    // of the layers at x; none: all measured
  LineOrigin origin_at(double x) const { return origin ? origin(x) : LineOrigin::measured; }
};

// Horizontal bars, one below the other, of a chart of rows.
struct ChartBar {
  QString name{}, detail{};      // beside the bar
  std::vector<double> values{};  // by layer, zero or more
  double start = 0;              // where the first layer begins
  LineOrigin origin = LineOrigin::predicted;
  QString text{};          // behind the bar
  QString tip{};           // tooltip
  bool is_strong = false;  // the name is bold
  bool operator==(const ChartBar&) const = default;
};
struct ChartBars {
  std::vector<std::pair<QString, QColor>> layers{};  // from left to right
  std::vector<ChartBar> bars{};                      // from top to bottom
  std::vector<double> overall{};  // legend values while no bar is chosen, by layer; empty: those of the first bar
  QString text_title{};           // of the texts behind the bars, in the table
  double least_end = 0;           // the axis reaches this value
  bool is_outdated = false;       // drawn faintly
  bool operator==(const ChartBars&) const = default;
};

struct ChartNote {  // a cross at the x axis for a missing value; the caption says why
  double x = 0;
  QColor color{};
  bool operator==(const ChartNote&) const = default;
};

struct LevelLine {  // a horizontal line (capacity, prediction) or a vertical limit of x
  QString name{};
  double value = 0;
  QColor color{};
  LineOrigin origin = LineOrigin::measured;
  QString text{};  // instead of the value
  bool operator==(const LevelLine&) const = default;
};

struct ChartOptions {
  QString title{}, unit{};  // the unit is shown beside the title
  AxisQuantity quantity = AxisQuantity::plain;
  QString empty{};           // shown while there is no data
  bool jump_to_now = false;  // has the "Jump to Now" button
  bool from_zero = false;    // the y axis starts at zero
  bool rows = false;         // horizontal bars: set_bars() is its data, and the link belongs to this chart alone
};

// The content of a chart.
struct ChartContent {
  ChartOptions options{};
  std::vector<ChartLine> lines{};
  ChartStack stack{};
  ChartBars bars{};
  std::vector<LevelLine> levels{};  // across the values
  std::vector<LevelLine> limits{};  // vertical lines
  std::vector<ChartNote> notes{};
  QString caption{};           // of the notes
  std::set<QString> hidden{};  // names of lines and layers
  int emphasis = -1;           // the group that is not faded; -1: all
  Scale scale = Scale::linear;
  bool empty() const;
  bool is_hidden(const QString& name) const { return hidden.contains(name); }
  QColor color_of(const ChartLine& line) const;  // faded if another group is emphasised
};

}  // namespace mw::ui
