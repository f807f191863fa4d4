// SPDX-License-Identifier: GPL-3.0-or-later
// Converts the views of runs and sweeps to chart data.
#pragma once
#include "core/views/sweep_view.h"
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

// A sweep: loads on a log2 axis, one line per input length with its band and audit marks, the offered throughput, SLOs
// and capacity.
using SweepViewPtr = std::shared_ptr<const views::SweepView>;

LineOrigin origin_of(formats::ResultProvenance provenance);
QString origin_text(formats::ResultProvenance provenance);  // "measured"
Marks marks_of(int index);

std::vector<Tick> ticks_of(const views::LoadAxis& axis);
AxisRange range_of(const std::vector<Tick>& stops);

// `group` determines colour and marks.
ChartLine line_of(const std::vector<views::ChartSample>& samples, const QString& name, LineOrigin origin, int group);
// Flags every sample with a finding about this metric.
void add_flags(ChartLine& line, const std::vector<views::ChartSample>& samples,
               const std::vector<audit::AuditFinding>& findings, views::SweepMetric metric);

std::vector<ChartLine> sweep_lines(const views::SweepView& view, const views::LoadAxis& axis,
                                   views::SweepMetric metric);
// Requested output tokens per second at every rate.
ChartLine offered_line(const views::SweepView& view, const views::LoadAxis& axis);
std::vector<LevelLine> slo_levels(const options::Slo& slo, views::SweepMetric metric);
// The knee and the highest rate that meets the SLOs, for one line.
std::vector<LevelLine> capacity_limits(const views::SweepView& view, size_t line);
QString finding_text(const audit::AuditFinding& finding);  // with its formula

}  // namespace mw::ui
