// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/buffers_model.h"

#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"

namespace mw::ui {

void BuffersModel::show(std::vector<plan::Buffer> rows) {
  const bool keeps = rows.size() == rows_.size();
  if (!keeps) beginResetModel();
  rows_ = std::move(rows);
  if (!keeps)
    endResetModel();
  else if (!rows_.empty())
    emit dataChanged(index(0, 0), index(rowCount() - 1, columns - 1));
}

int BuffersModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int BuffersModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant BuffersModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const plan::Buffer& b = rows_[static_cast<size_t>(index.row())];
  const auto text = [&] {
    if (index.column() == buffer) return qs(b.name);
    return index.column() == bytes ? qs(to_text(b.bytes)) : category_text(b.category);
  };
  switch (role) {
    case Qt::DisplayRole:
      return text();
    case Qt::ToolTipRole: {
      QStringList lines{text()};
      if (!b.formula.empty()) lines << qs(b.formula);
      if (b.unpadded < b.bytes) lines << tr("%1 without padding").arg(qs(to_text(b.unpadded)));
      return lines.join(u'\n');
    }
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (index.column() == bytes ? Qt::AlignRight : Qt::AlignLeft));
    default:
      return {};
  }
}

QVariant BuffersModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Largest at the Peak"), tr("Bytes"), tr("Category")};
  return names[section];
}

}  // namespace mw::ui
