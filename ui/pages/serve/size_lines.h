// SPDX-License-Identifier: GPL-3.0-or-later
// From a size run's view to what the charts draw: batches on a log2 axis, a line per workload, memory by category.
#pragma once
#include <memory>

#include "core/views/size_view.h"
#include "ui/plot/plot_data.h"

namespace mw::ui {

using SizeViewPtr = std::shared_ptr<const views::SizeView>;

QString workload_text(serve::Workload workload);
QString short_text(serve::Workload workload);  // for legends
// "does not fit: needs 9.1 GiB, largest that fits 95 (predicted)"; empty where it was measured.
QString refusal_text(const serve::SizePoint& point);

struct BatchAxis {
  std::vector<Tick> stops;
  Span range;
};
BatchAxis batch_axis(const views::SizeView& view);

// Where there is no measurement, a cross; the caption says what it means.
struct Notes {
  std::vector<PlotNote> marks{};
  QString caption{};
};
using PointValue = double (*)(const serve::SizePoint::Measured&);
std::vector<PlotLine> size_lines(const views::SizeView& view, PointValue value);
Notes time_notes(const views::SizeView& view);

// Of one workload; all of a run share their height, so that they compare at a glance.
PlotStack size_stack(const SizeViewPtr& view, serve::Workload workload);
std::vector<LevelLine> size_levels(const views::SizeView& view);
Notes memory_notes(const views::SizeView& view, serve::Workload workload);

}  // namespace mw::ui
