// SPDX-License-Identifier: GPL-3.0-or-later
// From a sweep's view to what the charts draw: loads on a log2 axis, a line per input length with its band and audit
// marks, the offered throughput, SLO and capacity.
#pragma once
#include <memory>

#include "core/views/sweep_charts.h"
#include "ui/plot/plot_data.h"

namespace mw::ui {

using SweepViewPtr = std::shared_ptr<const views::SweepView>;

Origin origin_of(formats::Provenance provenance);
QString origin_text(formats::Provenance provenance);  // "measured"
Marks marks_of(int index);

std::vector<Tick> ticks_of(const views::LoadAxis& axis);
Span range_of(const std::vector<Tick>& stops);

// One line of samples; `group` decides the colour.
PlotLine line_of(const std::vector<views::ChartSample>& samples, const QString& name, Origin origin, int group);
// A flag on every sample that has a finding about this metric.
void add_flags(PlotLine& line, const std::vector<views::ChartSample>& samples,
               const std::vector<serve::Finding>& findings, views::SweepMetric metric);

std::vector<PlotLine> sweep_lines(const views::SweepView& view, const views::LoadAxis& axis, views::SweepMetric metric);
// Tokens a second that every rate asks for.
PlotLine offered_line(const views::SweepView& view, const views::LoadAxis& axis);
std::vector<LevelLine> slo_levels(const serve::Slo& slo, views::SweepMetric metric);
// Knee and the rate that meets the SLO, of one of its lines.
std::vector<LevelLine> capacity_limits(const views::SweepView& view, size_t line);
QString finding_text(const serve::Finding& finding);  // with its formula

}  // namespace mw::ui
