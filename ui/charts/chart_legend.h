// SPDX-License-Identifier: GPL-3.0-or-later
// The header of a chart: its title, and the legend with the values at the cursor in up to three rows. GUI thread.
#pragma once
#include <QCoreApplication>
#include <QStringList>

#include "ui/charts/chart_axes.h"

class QPainter;

namespace mw::ui {

struct LegendEntry {
  QString name;
  QColor color;  // invalid: a sum without a mark
  LineOrigin origin = LineOrigin::measured;
  QString value;
  Marks marks = Marks::none;
  QRectF at{};
  bool named = true;  // the name fits
  bool shown = true;  // the legend shows the value; stacks show theirs at the cursor
  int group = -1;
};
std::vector<LegendEntry> legend_entries(const ChartAxes& axes);

class ChartLegend {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::ChartLegend)
 public:
  explicit ChartLegend(const ChartAxes& axes) : axes_(axes), content_(axes.content) {}
  // Places the entries, in the first row before `header_end`, where the buttons begin. False: in as many rows as
  // before.
  bool lay_out(double header_end);
  void forget_rows() { rows_ = 1; }  // until the next lay_out()
  int rows() const { return rows_; }
  const std::vector<LegendEntry>& entries() const { return entries_; }  // that fitted
  const LegendEntry* entry_at(QPointF at) const;                        // null: none
  QRectF folded_at() const { return folded_at_; }  // of "+3" behind the last entry; empty: all fitted
  QString folded() const;                          // the others, one per line
  QStringList texts() const;                       // "weights 16.9 GiB" of all
  void paint(QPainter& painter, bool with_caption) const;

 private:
  enum class Names { where_they_fit, none };
  bool place(std::vector<LegendEntry>& entries, int most, Names names, int& row) const;
  void fold(int all);  // replaces the last entries by their number
  double limit(int row) const { return row == 0 ? header_end_ - 6 : axes_.size.width() - 10.0; }
  double title_width() const;
  void paint_entry(QPainter& painter, const LegendEntry& entry) const;
  const ChartAxes& axes_;
  const ChartContent& content_;
  std::vector<LegendEntry> entries_;
  QStringList names_;  // of all
  QRectF folded_at_;
  double header_end_ = 0;
  int rows_ = 1;
};

}  // namespace mw::ui
