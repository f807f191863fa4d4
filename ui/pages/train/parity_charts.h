// SPDX-License-Identifier: GPL-3.0-or-later
// Shows a parity check: difference of logits by position, difference of hidden states by layer, and a row for each form
// of the merged model. Hidden until it has something to show. GUI thread.
#pragma once
#include "core/views/parity_view.h"
#include "ui/charts/chart.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

class ParityCharts : public QWidget {
  Q_OBJECT
 public:
  explicit ParityCharts(QWidget* parent = nullptr);
  void show_parity(const train::Parity& parity);
  void clear();
  Chart& logits() { return *logits_; }
  Chart& layers() { return *layers_; }
  QTableView& table() { return *table_; }

 private:
  ChartLink positions_link_, layers_link_;
  TableModel<views::ParityRow> rows_;
  Chart *logits_, *layers_;
  QTableView* table_;
};

}  // namespace mw::ui
