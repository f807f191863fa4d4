// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the points of a size run. GUI thread.
#pragma once
#include <QAbstractTableModel>

#include "ui/pages/serve/size_lines.h"

namespace mw::ui {

class SizesModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  // The main results, then one column per memory category.
  enum Column { workload, batch, time, per_token, speed, peak, predicted, result, prefill, step, categories };
  static constexpr int columns = categories + static_cast<int>(kMemoryCategories);
  enum Role { value_role = Qt::UserRole };  // the numeric value: seconds, bytes, tokens/s
  using QAbstractTableModel::QAbstractTableModel;

  void show(SizeViewPtr view);
  const serve::SizePoint& point(int row) const { return rows_[static_cast<size_t>(row)]; }
  bool column_used(int column) const;  // false for a category that no point has
  QString csv() const;                 // RFC 4180, full precision, seconds and bytes

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::optional<double> value(const serve::SizePoint& point, int column) const;
  QString text(const serve::SizePoint& point, int column) const;
  SizeViewPtr view_;
  std::vector<serve::SizePoint> rows_;
};

}  // namespace mw::ui
