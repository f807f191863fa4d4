// SPDX-License-Identifier: GPL-3.0-or-later
// From a run's view to what the charts draw.
#pragma once
#include "ui/plot/plot_data.h"
#include "ui/train/run_controller.h"

namespace mw::ui {

// Empty where the run has no such metric yet.
std::vector<PlotLine> loss_lines(const RunPtr& run);
std::vector<PlotLine> metric_line(const RunPtr& run, const std::string& metric, const QString& name, int color,
                                  bool smooth);
PlotStack memory_stack(const RunPtr& run);  // of device 0; no sample function before its first report
std::vector<LevelLine> memory_levels(const RunPtr& run);
QString category_text(MemoryCategory category);

}  // namespace mw::ui
