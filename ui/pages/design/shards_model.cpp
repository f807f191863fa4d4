// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/shards_model.h"

#include <QFont>
#include <QRegularExpression>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

void ShardsModel::show(std::vector<views::ShardRow> rows, std::vector<views::ShardRow> baseline, bool stale) {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  const bool keeps = std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(), same);
  if (!keeps) beginResetModel();
  rows_ = std::move(rows);
  pinned_ = std::move(baseline);
  stale_ = stale;
  if (!keeps)
    endResetModel();
  else if (!rows_.empty())
    emit dataChanged(index(0, 0), index(rowCount() - 1, columns - 1));
}

int ShardsModel::find(const QString& first) const {
  const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const auto& r) { return qs(r.first) == first; });
  return at == rows_.end() ? -1 : static_cast<int>(at - rows_.begin());
}

int ShardsModel::row_of(const QString& name) const {
  static const QRegularExpression kLayer(u"^layers\\.\\d+\\."_s);
  const QString kind = QString(name).replace(kLayer, u"layers.*."_s);
  const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const auto& r) { return qs(r.name) == kind; });
  return at == rows_.end() ? -1 : static_cast<int>(at - rows_.begin());
}

int ShardsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int ShardsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

const views::ShardRow* ShardsModel::changed(const views::ShardRow& row) const {
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](const auto& p) { return p.first == row.first; });
  return at == pinned_.end() || (at->spec == row.spec && at->shard == row.shard) ? nullptr : &*at;
}

QVariant ShardsModel::number(const views::ShardRow& r, int column) const {
  switch (column) {
    case count:
      return r.count;
    case per_device:
      return static_cast<double>(r.per_device.value);
    case padding:
      return r.padding;
    case copies:
      return static_cast<double>(r.replicas);
    default:
      return text(r, column);
  }
}

QString ShardsModel::text(const views::ShardRow& r, int column) const {
  switch (column) {
    case tensor:
      return qs(r.name);
    case count:
      return QString::number(r.count);
    case shape:
      return qs(r.shape);
    case spec:
      return qs(mesh::to_text(r.spec));
    case shard:
      return qs(r.shard);
    case per_device:
      return qs(to_text(r.per_device));
    case padding:
      return r.padding < 0.0005 ? QString() : QString::number(r.padding * 100, 'f', r.padding < 0.1 ? 1 : 0) + u" %"_s;
    case copies:
      return QString::number(r.replicas);
    case rule:
      return qs(r.rule);
  }
  return {};
}

QVariant ShardsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const views::ShardRow& r = row(index.row());
  const int c = index.column();
  const bool numeric = c == count || c == per_device || c == padding || c == copies;
  switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
      return text(r, c);
    case value_role:
      return number(r, c);
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (numeric ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ForegroundRole:
      if (stale_) return theme().faint;
      if (changed(r)) return theme().accent;
      return c == rule || c == shape ? QVariant(theme().muted) : QVariant();
    case Qt::FontRole:
      if (changed(r)) {
        QFont bold;
        bold.setBold(true);
        return bold;
      }
      return {};
    case Qt::ToolTipRole: {
      if (const views::ShardRow* p = changed(r))
        return tr("%1\npinned: %2, %3 each").arg(text(r, c), qs(mesh::to_text(p->spec)), qs(p->shard));
      if (c == spec) return tr("%1\nDouble-click or F2 to type another: axes, - for not split").arg(text(r, c));
      return text(r, c);
    }
    default:
      return {};
  }
}

bool ShardsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || index.column() != spec) return false;
  const QString typed = value.toString().trimmed();
  if (typed != text(row(index.row()), spec)) emit spec_typed(qs(row(index.row()).name), typed);
  return true;
}

Qt::ItemFlags ShardsModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags base = QAbstractTableModel::flags(index);
  return index.column() == spec ? base | Qt::ItemIsEditable : base;
}

QVariant ShardsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole &&
      (section == count || section == per_device || section == padding || section == copies))
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && section == padding)
    return tr("What memory tiles and uneven pieces add to the bytes of the values");
  if (role == Qt::ToolTipRole && section == copies) return tr("Devices that hold the same piece");
  if (role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Tensor"), tr("Count"),   tr("Shape"),  tr("Spec"), tr("On Each Device"),
                           tr("Bytes"),  tr("Padding"), tr("Copies"), tr("Rule")};
  return names[section];
}

}  // namespace mw::ui
