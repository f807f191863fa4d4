// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of one table of a proof; failures are marked by text and colour. GUI thread.
#pragma once
#include <QAbstractTableModel>

#include <memory>

#include "core/views/proof_view.h"

namespace mw::ui {

using ProofPtr = std::shared_ptr<const views::ProofView>;

class ProofModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  using QAbstractTableModel::QAbstractTableModel;
  void show(ProofPtr proof, size_t table);
  const views::ProofTable* table() const;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;  // its own, then whether it holds
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  ProofPtr proof_;
  size_t index_ = 0;
};

}  // namespace mw::ui
