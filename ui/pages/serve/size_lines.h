// SPDX-License-Identifier: GPL-3.0-or-later
// Converts a size run to chart data: batches on a log2 axis, one line per workload, memory by category.
#pragma once
#include "core/views/size_view.h"
#include "ui/charts/chart_data.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

using SizeViewPtr = std::shared_ptr<const views::SizeView>;

QString workload_text(options::Workload workload);
QString short_text(options::Workload workload);  // for legends
// "does not fit: needs 9.1 GiB, largest that fits 95 (predicted)"; empty if it has a time.
QString refusal_text(const serve::MeasuredSize& point);

struct BatchAxis {
  std::vector<Tick> stops;
  AxisRange range;
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

// The memory of one line of the view, which may be null; all charts of a run have the same scale for comparison.
ChartStack size_stack(const SizeViewPtr& view, const views::SizeView::Line* line);
std::vector<LevelLine> size_levels(const views::SizeView& view);
Notes memory_notes(const views::SizeView& view, const views::SizeView::Line* line);

// Table model of the points of the run.
class SizesModel : public TableModel<serve::MeasuredSize> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::SizesModel)
 public:
  // One column for each memory category follows `step`.
  enum Column { workload, batch, time, per_token, speed, peak, predicted, result, prefill, step, categories };
  static constexpr int columns = categories + static_cast<int>(kMemoryCategories);
  SizesModel();
  void show(SizeViewPtr view);
  bool is_column_used(int column) const;  // false: a memory category that no point uses

 private:
  SizeViewPtr view_;
};

}  // namespace mw::ui
