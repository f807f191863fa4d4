// SPDX-License-Identifier: GPL-3.0-or-later
// Kinds of charts that are more than lines: their data as lines and stacks of a Chart.
#pragma once
#include "ui/charts/chart_data.h"

namespace mw::ui {

// Counts of values in bins [i * width, (i + 1) * width), stacked by layer.
struct Histogram {
  struct Layer {
    QString name;
    QColor color;
    std::vector<double> counts;  // by bin, as many in each layer
    double beyond = 0;           // values beyond the last bin, which only the legend counts
  };
  double width = 1;
  std::vector<Layer> layers;
  size_t bins() const { return layers.empty() ? 0 : layers.front().counts.size(); }
};
ChartStack histogram_stack(Histogram histogram);

// Bars at the positions 0, 1, 2, ...
ChartStack bar_stack(const ChartBars& bars);

// Points of a trade-off: those on the front are emphasised, the dominated ones are lighter.
struct ParetoPoints {
  QString name, front_name;
  QColor color;
  LineOrigin origin = LineOrigin::measured;
  std::vector<views::Point> points{};
  std::vector<bool> front{};  // by point, from views::pareto_front() or by more than two criteria
};
std::vector<ChartLine> pareto_lines(const ParetoPoints& points);

}  // namespace mw::ui
