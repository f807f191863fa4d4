// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the sharding of every kind of tensor; an edited spec becomes a rule of the experiment. GUI thread.
#pragma once
#include <QAbstractTableModel>

#include "core/views/design_view.h"

namespace mw::ui {

class ShardsModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { tensor, count, shape, spec, shard, per_device, padding, copies, rule, columns };
  enum Role { value_role = Qt::UserRole };  // the number behind the text
  using QAbstractTableModel::QAbstractTableModel;
  void show(std::vector<views::ShardRow> rows, std::vector<views::ShardRow> baseline, bool stale);
  const views::ShardRow& row(int at) const { return rows_[static_cast<size_t>(at)]; }
  int find(const QString& first) const;   // row of that tensor, -1
  int row_of(const QString& name) const;  // of the row that stands for it, whatever its layer; -1
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 signals:
  void spec_typed(const QString& tensor, const QString& spec);  // name of the row

 private:
  const views::ShardRow* changed(const views::ShardRow& row) const;  // the pinned one where its spec differs
  QVariant number(const views::ShardRow& row, int column) const;
  QString text(const views::ShardRow& row, int column) const;
  std::vector<views::ShardRow> rows_, pinned_;
  bool stale_ = false;
};

}  // namespace mw::ui
