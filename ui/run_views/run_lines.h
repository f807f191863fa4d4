// SPDX-License-Identifier: GPL-3.0-or-later
// From a run's view to what the charts draw.
#pragma once
#include "ui/plot/plot_data.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

// Empty where the run has no such metric yet.
std::vector<PlotLine> loss_lines(const RunPtr& run);
std::vector<PlotLine> metric_line(const RunPtr& run, const std::string& metric, const QString& name, int color,
                                  bool smooth);
PlotStack memory_stack(const RunPtr& run, int device);  // no sample function before its first report
std::vector<LevelLine> memory_levels(const RunPtr& run, int device = 0);
// Bytes or seconds of a step by kind, cause or axis, waiting as a layer of its own; no sample function before the
// first.
PlotStack traffic_stack(const RunPtr& run, views::TrafficBy by, views::TrafficAmount amount);
// What a chart says where the run has nothing for it: what it comes with in a run of this program, or why it does not.
enum class Comes { with_the_model, with_a_step };
QString absent_text(const RunPtr& run, Comes with);
QString category_text(MemoryCategory category);

}  // namespace mw::ui
