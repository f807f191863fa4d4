// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the points of a sweep with the units of vLLM (ms, tokens/s) and audit findings.
#pragma once
#include <QCoreApplication>

#include "ui/run_views/sweep_lines.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

struct SweepRow {
  formats::BenchPoint point;
  size_t index = 0;  // of the point in its sweep
};

class SweepModel : public TableModel<SweepRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::SweepModel)
 public:
  enum Column { input_len, request_rate, verdict, cache, audit, first_number };  // then vLLM's metrics
  SweepModel();
  void show(SweepViewPtr view);
  bool is_column_used(int column) const;
  QString csv() const;  // with vLLM's names

 private:
  QVariant cell(const SweepRow& row, int column, int role) const;
  std::vector<const audit::AuditFinding*> findings(const SweepRow& row) const;  // of the point, except fine ones
  Columns table_columns() const;
  SweepViewPtr view_;
};

}  // namespace mw::ui
