// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the data rows. Filters and sorts by an index, so that it is fast with millions of rows. GUI thread.
#pragma once
#include <array>

#include "core/views/data_view.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

enum class RowFilter { all, ok, truncated, too_long, no_loss, bad, repeated, in_held_out, held_out };
inline constexpr int kRowFilters = 9;

QString filter_text(RowFilter filter);
QString state_text(const data::DataRow& row);
// "Row 12, line 14"; "Line 3" for a line that is not a row.
QString place_text(const data::DataRow& row);

class DataRowsModel : public TableModel<data::DataRow> {
 public:
  enum Column { number, state, tokens, loss };
  // `rows` outlives the model.
  explicit DataRowsModel(const std::vector<data::DataRow>& rows);

  void restart();  // the rows were reset
  void grow();     // rows were appended
  void set_filter(RowFilter filter);
  RowFilter filter() const { return filter_; }
  std::int64_t count(RowFilter filter) const { return counts_[static_cast<size_t>(filter)]; }
  const data::DataRow& row(int at) const override { return all_[order_[static_cast<size_t>(at)]]; }
  int find(std::int64_t row) const;  // the visible row with this number; -1: none

  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;

 private:
  int size() const override { return static_cast<int>(order_.size()); }
  void arrange();
  const std::vector<data::DataRow>& all_;
  std::vector<std::uint32_t> order_;  // of the visible rows
  size_t seen_ = 0;                   // rows examined
  std::array<std::int64_t, kRowFilters> counts_{};
  RowFilter filter_ = RowFilter::all;
  int sorted_by_ = number;
  Qt::SortOrder direction_ = Qt::AscendingOrder;
};

}  // namespace mw::ui
