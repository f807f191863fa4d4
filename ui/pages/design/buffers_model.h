// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the largest buffers at the peak of a plan. GUI thread.
#pragma once
#include <QAbstractTableModel>

#include "core/plan/request/plan_result.h"

namespace mw::ui {

class BuffersModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { buffer, bytes, category, columns };
  using QAbstractTableModel::QAbstractTableModel;
  void show(std::vector<plan::Buffer> rows);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<plan::Buffer> rows_;
};

}  // namespace mw::ui
