// SPDX-License-Identifier: GPL-3.0-or-later
// The data of a chart as table rows, for reading, screen readers and the clipboard.
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
  void load(const Plot& plot);  // the visible range
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  QString csv() const;  // RFC 4180, full precision

  static constexpr size_t kMaxRows = 100000;

 private:
  QStringList columns_;
  std::vector<std::vector<double>> rows_;  // x, then one value per column; NaN: none
  std::vector<QString> names_;             // of the rows, if the x axis has named positions
  Quantity x_ = Quantity::count, y_ = Quantity::plain;
};

void copy_csv(const Plot& plot);

}  // namespace mw::ui
