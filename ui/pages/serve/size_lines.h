// SPDX-License-Identifier: GPL-3.0-or-later
// Converts a size run to chart data: batches on a log2 axis, one line per workload, memory by category.
#pragma once
#include <memory>

#include "core/views/size_view.h"
#include "ui/charts/chart_data.h"

namespace mw::ui {

using SizeViewPtr = std::shared_ptr<const views::SizeView>;

QString workload_text(serve::Workload workload);
QString short_text(serve::Workload workload);  // for legends
// "does not fit: needs 9.1 GiB, largest that fits 95 (predicted)"; empty if it was measured.
QString refusal_text(const serve::SizePoint& point);

struct BatchAxis {
  std::vector<Tick> stops;
  Span range;
};
BatchAxis batch_axis(const views::SizeView& view);

// A cross marks a missing measurement; the caption explains it.
struct Notes {
  std::vector<ChartNote> marks{};
  QString caption{};
};
using PointValue = double (*)(const serve::SizePoint::Measured&);
std::vector<ChartLine> size_lines(const views::SizeView& view, PointValue value);
Notes time_notes(const views::SizeView& view);

// Of one workload; all charts of a run have the same scale for comparison.
ChartStack size_stack(const SizeViewPtr& view, serve::Workload workload);
std::vector<LevelLine> size_levels(const views::SizeView& view);
Notes memory_notes(const views::SizeView& view, serve::Workload workload);

}  // namespace mw::ui
