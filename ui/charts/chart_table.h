// SPDX-License-Identifier: GPL-3.0-or-later
// The data of a chart as table rows, for reading, screen readers, the clipboard and files. GUI thread.
#pragma once
#include <QTimer>
#include <filesystem>

#include "ui/charts/ticks.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

class Chart;

struct ChartRow {
  QString name{};                // of x, if the x axis has named positions
  std::vector<double> values{};  // x, then one value per column; NaN: none
  QString text{};                // behind a bar
};

class ChartTableModel : public TableModel<ChartRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::ChartTableModel)
 public:
  explicit ChartTableModel(QObject* parent) : TableModel({}, {}, parent) {}
  void load(const Chart& chart);  // the visible range
  QString csv() const;            // RFC 4180, full precision

 private:
  QStringList titles_;
};

// The table over its chart. Numbers that change every frame are unreadable, so that refresh() limits how often it
// loads.
class ChartTable {
 public:
  explicit ChartTable(Chart& chart);
  QTableView& view() { return *view_; }
  void load() { model_.load(chart_); }
  void refresh();

 private:
  const Chart& chart_;
  ChartTableModel model_{nullptr};
  QTableView* view_;  // of the chart
  QTimer due_;
};

void copy_csv(const Chart& chart);

class Chart;

QString chart_file_filter();  // of file dialogs
// The picture (.png in twice the size, .svg), or the data of the visible range (.csv). Writes atomically. Throws
// mw::Error for other endings and for files that cannot be written.
void export_chart(Chart& chart, const std::filesystem::path& file);

}  // namespace mw::ui
