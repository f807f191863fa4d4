// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of the Design page: figures of the plan, and sharding of every kind of tensor.
#pragma once
#include "core/views/design_view.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

// The figures of the plan, compared with a pinned design if there is one.
class PlanModel : public TableModel<views::PlanLine> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::PlanModel)
 public:
  enum Column { figure, value, pinned, change, detail };
  PlanModel();
  void show(std::vector<views::PlanLine> lines, std::vector<views::PlanLine> baseline, bool stale);
  bool has_pinned() const { return !pinned_.empty(); }

 private:
  const views::PlanLine* pinned_line(const views::PlanLine& line) const;  // of the same label in the pinned design
  QVariant cell(const views::PlanLine& line, int column, int role) const;
  std::vector<views::PlanLine> pinned_;
  bool stale_ = false;
};

// An edited spec becomes a rule of the experiment.
class ShardsModel : public TableModel<views::ShardRow> {
  Q_OBJECT
 public:
  enum Column { tensor, spec, shard, per_device, change, count, shape, padding, copies, rule };
  ShardsModel();
  void show(std::vector<views::ShardRow> rows, std::vector<views::ShardRow> baseline, bool stale);
  bool has_pinned() const { return !pinned_.empty(); }
  int find(const QString& first) const;   // row of the tensor; -1: none
  int row_of(const QString& name) const;  // row of this tensor in any layer; -1: none
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 signals:
  void spec_typed(const QString& tensor, const QString& spec);  // name of the row

 private:
  QString change_text(const views::ShardRow& row) const;  // from the pinned design
  QVariant cell(const views::ShardRow& row, int column, int role) const;
  std::vector<views::ShardRow> pinned_;
  bool stale_ = false;
};

}  // namespace mw::ui
