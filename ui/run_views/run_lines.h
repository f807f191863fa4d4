// SPDX-License-Identifier: GPL-3.0-or-later
// Converts the view of a run to chart data.
#pragma once
#include "ui/charts/chart_data.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

// Empty if the run has no such metric yet.
std::vector<ChartLine> loss_lines(const RunPtr& run);
std::vector<ChartLine> metric_line(const RunPtr& run, const std::string& metric, const QString& name, int color,
                                   bool smooth);
// The share of right answers in % by step, with its 95 % interval. Its name is the last number: "49 of 60".
ChartLine answers_line(const std::vector<store::ScoredAnswers>& answers);
ChartStack memory_stack(const RunPtr& run, int device);  // without a sample function before the first report
std::vector<LevelLine> memory_levels(const RunPtr& run, int device = 0);
// Bytes or seconds of each step by kind, cause or axis, with waiting as a separate layer. Without a sample function
// before the first report.
ChartStack traffic_stack(const RunPtr& run, views::TrafficBy by, views::TrafficAmount amount);
// The text of a chart without data: when the data will appear, or why it will not.
enum class Comes { with_the_model, with_a_step };
QString absent_text(const RunPtr& run, Comes with);
QString category_text(MemoryCategory category);

}  // namespace mw::ui
