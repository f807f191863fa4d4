// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/proof_model.h"

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

void ProofModel::show(ProofPtr proof, size_t table) {
  beginResetModel();
  proof_ = std::move(proof);
  index_ = table;
  endResetModel();
}

const views::ProofTable* ProofModel::table() const {
  return proof_ && index_ < proof_->tables.size() ? &proof_->tables[index_] : nullptr;
}

int ProofModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !table() ? 0 : static_cast<int>(table()->rows.size());
}

int ProofModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || !table() ? 0 : static_cast<int>(table()->columns.size()) + 1;
}

QVariant ProofModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !table()) return {};
  const views::ProofRow& row = table()->rows[static_cast<size_t>(index.row())];
  const auto column = static_cast<size_t>(index.column());
  const bool verdict = column >= row.cells.size();
  if (role == Qt::DisplayRole || role == Qt::ToolTipRole)
    return verdict ? (row.holds ? u"\u2713 "_s + tr("holds") : u"\u2717 "_s + tr("differs")) : qs(row.cells[column]);
  if (role == Qt::ForegroundRole && (verdict || !row.holds)) return row.holds ? theme().good : theme().bad;
  if (role == Qt::TextAlignmentRole)
    return QVariant(Qt::AlignVCenter | (column == 0 || verdict ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

QVariant ProofModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || !table()) return {};
  const auto column = static_cast<size_t>(section);
  const bool verdict = column >= table()->columns.size();
  if (role == Qt::TextAlignmentRole)
    return QVariant(Qt::AlignVCenter | (column == 0 || verdict ? Qt::AlignLeft : Qt::AlignRight));
  if (role != Qt::DisplayRole) return {};
  return verdict ? tr("Verdict") : qs(table()->columns[column]);
}

}  // namespace mw::ui
