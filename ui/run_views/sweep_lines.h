// SPDX-License-Identifier: GPL-3.0-or-later
// Converts the view of a sweep to chart data: loads on a log2 axis, one line per input length with its band and audit
// marks, the offered throughput, SLOs and capacity.
#pragma once
#include "core/views/sweep_view.h"
#include "ui/charts/chart_data.h"

namespace mw::ui {

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
