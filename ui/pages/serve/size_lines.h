// SPDX-License-Identifier: GPL-3.0-or-later
// Converts a size run to chart data: batches on a log2 axis, one line per workload, memory by category.
#pragma once
#include <memory>

#include "core/views/size_view.h"
#include "ui/charts/chart_data.h"

namespace mw::ui {

using SizeViewPtr = std::shared_ptr<const views::SizeView>;

QString workload_text(options::Workload workload);
QString short_text(options::Workload workload);  // for legends
// "does not fit: needs 9.1 GiB, largest that fits 95 (predicted)"; empty if it has a time.
QString refusal_text(const serve::SizePoint& point);

struct BatchAxis {
  std::vector<Tick> stops;
  Span range;
};
BatchAxis batch_axis(const std::vector<int>& batches);  // ascending

// A cross marks a missing time; the caption explains it.
struct Notes {
  std::vector<ChartNote> marks{};
  QString caption{};
};
enum class SizeTime { total, per_token };
// One line per workload, without and with adapters. A predicted line is dashed and has its interval as a band.
// `prefix`: of the names, for a run drawn beside another one.
std::vector<ChartLine> size_lines(const views::SizeView& view, SizeTime time, const QString& prefix = {});
Notes time_notes(const views::SizeView& view);

// Of one line of the view, which may be null; all charts of a run have the same scale for comparison.
ChartStack size_stack(const SizeViewPtr& view, const views::SizeView::Line* line);
std::vector<LevelLine> size_levels(const views::SizeView& view);
Notes memory_notes(const views::SizeView& view, const views::SizeView::Line* line);

}  // namespace mw::ui
