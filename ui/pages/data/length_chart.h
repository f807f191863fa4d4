// SPDX-License-Identifier: GPL-3.0-or-later
// Converts the lengths of rows to the data of the histogram.
#pragma once
#include "core/views/data_view.h"
#include "ui/charts/chart_data.h"

namespace mw::ui {

struct LengthChart {
  ChartStack stack{};
  AxisRange range{};
  QString caption{};
  std::vector<LevelLine> limits{};  // vertical lines
};
LengthChart length_chart(const train::DataIndex& index, const train::DataIndexRequest& request);

}  // namespace mw::ui
