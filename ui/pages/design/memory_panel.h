// SPDX-License-Identifier: GPL-3.0-or-later
// Predicted memory of a device at its peak: a bar by category with the capacity, a legend, and the largest buffers. GUI
// thread.
#pragma once
#include <QWidget>

#include "core/views/design.h"
#include "ui/pages/design/stack_bar.h"
#include "ui/theme/table_model.h"

class QLabel;
class QTableView;

namespace mw::ui {

class MemoryPanel : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryPanel(QWidget* parent = nullptr);
  void show_design(const views::DesignPtr& design, const views::DesignPtr& pinned, bool stale);
  void show_nothing();
  StackBar& bar() { return *bar_; }
  QTableView& buffers() { return *buffers_; }

 private:
  void show_legend(const plan::DeviceMemory& memory);
  QLabel *title_, *legend_;
  StackBar* bar_;
  TableModel<plan::Buffer> model_;
  QTableView* buffers_;
};

}  // namespace mw::ui
