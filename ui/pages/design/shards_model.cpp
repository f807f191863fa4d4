// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/shards_model.h"

#include <QFont>
#include <QRegularExpression>

#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using views::ShardRow;

QString padding_text(double padding) {
  return padding < 0.0005 ? QString() : QString::number(padding * 100, 'f', padding < 0.1 ? 1 : 0) + u" %"_s;
}

TableModel<ShardRow>::Columns shard_columns() {
  const auto tr = [](const char* text) { return ShardsModel::tr(text); };
  return {{.title = tr("Tensor"), .text = [](const ShardRow& r) { return qs(r.name); }},
          {.title = tr("Count"),
           .alignment = Qt::AlignRight,
           .text = [](const ShardRow& r) { return QString::number(r.count); }},
          {.title = tr("Shape"), .text = [](const ShardRow& r) { return qs(r.shape); }},
          {.title = tr("Spec"), .text = [](const ShardRow& r) { return qs(mesh::to_text(r.spec)); }},
          {.title = tr("On each device"), .text = [](const ShardRow& r) { return qs(r.shard); }},
          {.title = tr("Bytes"),
           .alignment = Qt::AlignRight,
           .text = [](const ShardRow& r) { return qs(to_text(r.per_device)); }},
          {.title = tr("Padding"),
           .tooltip = tr("Bytes added by memory tiles and uneven pieces"),
           .alignment = Qt::AlignRight,
           .text = [](const ShardRow& r) { return padding_text(r.padding); }},
          {.title = tr("Copies"),
           .tooltip = tr("Number of devices with the same piece"),
           .alignment = Qt::AlignRight,
           .text = [](const ShardRow& r) { return QString::number(r.replicas); }},
          {.title = tr("Rule"), .text = [](const ShardRow& r) { return qs(r.rule); }}};
}

}  // namespace

ShardsModel::ShardsModel()
    : TableModel(shard_columns(),
                 [this](const ShardRow& row, int column, int role) { return cell(row, column, role); }) {}

void ShardsModel::show(std::vector<ShardRow> rows, std::vector<ShardRow> baseline, bool stale) {
  pinned_ = std::move(baseline);
  stale_ = stale;
  set_rows(std::move(rows), [](const ShardRow& a, const ShardRow& b) { return a.first == b.first; });
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

const views::ShardRow* ShardsModel::changed(const views::ShardRow& row) const {
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](const auto& p) { return p.first == row.first; });
  return at == pinned_.end() || (at->spec == row.spec && at->shard == row.shard) ? nullptr : &*at;
}

QVariant ShardsModel::cell(const ShardRow& r, int column, int role) const {
  if (role != Qt::ForegroundRole && role != Qt::FontRole && role != Qt::ToolTipRole) return {};
  const ShardRow* pinned = changed(r);
  switch (role) {
    case Qt::ForegroundRole:
      if (stale_) return theme().faint;
      if (pinned) return theme().accent;
      return column == rule || column == shape ? QVariant(theme().muted) : QVariant();
    case Qt::FontRole:
      if (pinned) {
        QFont bold;
        bold.setBold(true);
        return bold;
      }
      return {};
    case Qt::ToolTipRole: {
      if (!pinned && column != spec) return {};
      return pinned ? tr("%1\npinned: %2, %3 each")
                          .arg(text(r, column), qs(mesh::to_text(pinned->spec)), qs(pinned->shard))
                    : tr("%1\nDouble-click or press F2 to enter another spec: axes, or - for not sharded").arg(text(r, column));
    }
    default:
      return {};
  }
}

bool ShardsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || index.column() != spec) return false;
  const QString typed = value.toString().trimmed();
  if (typed != qs(mesh::to_text(row(index.row()).spec))) emit spec_typed(qs(row(index.row()).name), typed);
  return true;
}

Qt::ItemFlags ShardsModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags base = TableModel::flags(index);
  return index.column() == spec ? base | Qt::ItemIsEditable : base;
}

}  // namespace mw::ui
