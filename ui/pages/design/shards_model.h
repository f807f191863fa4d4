// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the sharding of every kind of tensor; an edited spec becomes a rule of the experiment.
#pragma once
#include "core/views/design_view.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class ShardsModel : public TableModel<views::ShardRow> {
  Q_OBJECT
 public:
  enum Column { tensor, count, shape, spec, shard, per_device, padding, copies, rule };
  ShardsModel();
  void show(std::vector<views::ShardRow> rows, std::vector<views::ShardRow> baseline, bool stale);
  int find(const QString& first) const;   // row of the tensor; -1: none
  int row_of(const QString& name) const;  // row of this tensor in any layer; -1: none
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 signals:
  void spec_typed(const QString& tensor, const QString& spec);  // name of the row

 private:
  const views::ShardRow* changed(const views::ShardRow& row) const;  // the pinned one if its spec differs
  QVariant cell(const views::ShardRow& row, int column, int role) const;
  std::vector<views::ShardRow> pinned_;
  bool stale_ = false;
};

}  // namespace mw::ui
