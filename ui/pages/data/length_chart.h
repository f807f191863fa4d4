// SPDX-License-Identifier: GPL-3.0-or-later
// From the lengths of the rows to what the histogram draws.
#pragma once
#include "core/views/data_view.h"
#include "ui/plot/plot_data.h"

namespace mw::ui {

struct LengthChart {
  PlotStack stack{};
  Span range{};
  QString caption{};
  std::vector<LevelLine> limits{};  // upright lines
};
LengthChart length_chart(const planning::DataIndex& index, const planning::DataIndexRequest& question);

}  // namespace mw::ui
