// SPDX-License-Identifier: GPL-3.0-or-later
// Predicted memory of a device at its peak: a chart by category with the capacity, and the largest buffers. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/design_view.h"
#include "ui/charts/chart.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

// Height of a chart of rows with axis titles and two rows of legend; pixels.
inline int bars_height(size_t bars) {
  return 120 + 22 * static_cast<int>(bars);
}

class MemoryPanel : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryPanel(QWidget* parent = nullptr);
  void show_design(const views::DesignPtr& design, const views::DesignPtr& pinned, bool stale);
  void show_nothing();
  Chart& chart() { return *chart_; }
  QTableView& buffers() { return *buffers_; }

 private:
  ChartLink link_;
  Chart* chart_;
  TableModel<plan::Buffer> model_;
  QTableView* buffers_;
};

}  // namespace mw::ui
