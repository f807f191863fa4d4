// SPDX-License-Identifier: GPL-3.0-or-later
// A chart's data as rows: for those who read numbers, for screen readers, for the clipboard.
#pragma once
#include <QAbstractTableModel>
#include <vector>

#include "ui/plot/ticks.h"

namespace mw::ui {

class Plot;

class PlotTableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit PlotTableModel(QObject* parent) : QAbstractTableModel(parent) {}
  void load(const Plot& plot);  // what lies in the visible range
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  QString csv() const;  // RFC 4180, full precision

  static constexpr size_t kMaxRows = 100000;

 private:
  QStringList columns_;
  std::vector<std::vector<double>> rows_;  // x, then one value per column, NaN where there is none
  std::vector<QString> names_;             // of the rows, where the x axis has named places
  Quantity x_ = Quantity::count, y_ = Quantity::plain;
};

void copy_csv(const Plot& plot);

}  // namespace mw::ui
