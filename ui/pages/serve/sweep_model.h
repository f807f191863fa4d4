// SPDX-License-Identifier: GPL-3.0-or-later
// The points of a sweep as rows, with vLLM's names and units (ms, tokens/s); the findings of the audit are marked.
#pragma once
#include "ui/run_views/sweep_lines.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

struct SweepRow {
  formats::BenchPoint point;
  size_t index = 0;  // of the point in its sweep
};

class SweepModel : public TableModel<SweepRow> {
 public:
  enum Column { input_len, request_rate, verdict, audit, first_number };  // then vLLM's metrics
  SweepModel();
  void show(SweepViewPtr view);
  bool column_used(int column) const;

 private:
  QVariant cell(const SweepRow& row, int column, int role) const;
  std::vector<const serve::Finding*> findings(const SweepRow& row) const;  // of the point, except fine ones
  Columns table_columns() const;
  SweepViewPtr view_;
};

}  // namespace mw::ui
