// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the outputs for held-out prompts by step, newest first. GUI thread.
#pragma once
#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <optional>

#include "ui/session/run_controller.h"

namespace mw::ui {

class SamplesModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { step, verdict, prompt, text, expected, columns };
  using QAbstractTableModel::QAbstractTableModel;
  void show_run(RunPtr run);
  void grow();  // rows were added (or the run rewound)
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  long step_of(int row) const { return sample(row).step; }

 private:
  const views::SampleShown& sample(int row) const;
  RunPtr run_;
  int rows_ = 0;
};

}  // namespace mw::ui
