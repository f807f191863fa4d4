// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the figures of the plan and of a pinned design. GUI thread.
#pragma once
#include <QAbstractTableModel>

#include "core/views/design_view.h"

namespace mw::ui {

class PlanModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { figure, value, pinned, change, detail, columns };
  using QAbstractTableModel::QAbstractTableModel;
  void show(std::vector<views::PlanLine> lines, std::vector<views::PlanLine> baseline, bool stale);
  bool compares() const { return !pinned_.empty(); }
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const views::PlanLine* beside(const views::PlanLine& line) const;  // of the same label in the pinned design
  QString text(const views::PlanLine& line, int column) const;
  std::vector<views::PlanLine> lines_, pinned_;
  bool stale_ = false;
};

}  // namespace mw::ui
