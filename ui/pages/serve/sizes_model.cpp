// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sizes_model.h"

#include <QFont>

#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

bool is_category(int column) {
  return column >= SizesModel::categories && column < SizesModel::columns;
}

size_t category_at(int column) {
  return static_cast<size_t>(column - SizesModel::categories);
}

Quantity quantity_of(int column) {
  switch (column) {
    case SizesModel::batch:
      return Quantity::count;
    case SizesModel::speed:
      return Quantity::plain;
    case SizesModel::time:
    case SizesModel::per_token:
    case SizesModel::prefill:
    case SizesModel::step:
      return Quantity::seconds;
    default:
      return Quantity::bytes;
  }
}

}  // namespace

void SizesModel::show(SizeViewPtr view) {
  std::vector<serve::SizePoint> now;
  if (view)
    for (const auto& line : view->lines) now.insert(now.end(), line.points.begin(), line.points.end());
  view_ = std::move(view);
  // During a run rows are only appended, without a reset, so that the scroll position stays.
  const auto same_point = [](const serve::SizePoint& a, const serve::SizePoint& b) {
    return a.workload == b.workload && a.batch == b.batch;
  };
  const bool grows =
      !rows_.empty() && now.size() >= rows_.size() && std::equal(rows_.begin(), rows_.end(), now.begin(), same_point);
  const int before = rowCount(), after = static_cast<int>(now.size());
  if (!grows) {
    beginResetModel();
    rows_ = std::move(now);
    endResetModel();
    return;
  }
  if (after > before) beginInsertRows({}, before, after - 1);
  rows_ = std::move(now);
  if (after > before) endInsertRows();
  emit dataChanged(index(0, 0), index(before - 1, columns - 1));
}

bool SizesModel::column_used(int column) const {
  return !is_category(column) || (view_ && view_->category_most.bytes[category_at(column)].value > 0);
}

int SizesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int SizesModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

std::optional<double> SizesModel::value(const serve::SizePoint& p, int column) const {
  const auto bytes = [](Bytes b) { return static_cast<double>(b.value); };
  if (column == batch) return p.batch;
  if (column == predicted) return bytes(p.predicted.total());
  if (is_category(column)) return bytes((p.measured ? p.measured->memory : p.predicted).bytes[category_at(column)]);
  if (!p.measured) return std::nullopt;
  const auto& m = *p.measured;
  const bool rollout = p.workload == serve::Workload::rollout;
  switch (column) {
    case time:
      return m.seconds;
    case per_token:
      return m.seconds_per_token();
    case prefill:
      return rollout ? std::optional(m.prefill_seconds) : std::nullopt;
    case step:
      return rollout ? std::optional(m.step_seconds) : std::nullopt;
    case speed:
      return m.tokens_per_second();
    case peak:
      return bytes(m.memory.total());
    default:
      return std::nullopt;
  }
}

QString SizesModel::text(const serve::SizePoint& p, int column) const {
  if (column == workload) return workload_text(p.workload);
  if (column == result) return p.measured ? tr("measured, median of %1").arg(p.measured->repeats) : refusal_text(p);
  const auto v = value(p, column);
  if (!v) return {};
  return column == speed ? qs(count_text(*v)) : value_text(*v, quantity_of(column));
}

QVariant SizesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const serve::SizePoint& p = point(index.row());
  const int c = index.column();
  const bool estimate = c == predicted || (is_category(c) && !p.measured);
  switch (role) {
    case Qt::DisplayRole:
      return text(p, c);
    case Qt::ToolTipRole:
      return estimate ? QString(text(p, c) + u", "_s + tr("predicted")) : text(p, c);
    case Qt::FontRole:
      if (estimate) {
        QFont font;
        font.setItalic(true);
        return font;
      }
      return {};
    case Qt::ForegroundRole:
      if (c == result && !p.measured) return theme().bad;
      return estimate ? QVariant(theme().muted) : QVariant();
    case Qt::TextAlignmentRole:
      return static_cast<int>((c == workload || c == result ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case value_role:
      if (const auto v = value(p, c)) return *v;
      return {};
  }
  return {};
}

QVariant SizesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((section == workload || section == result ? Qt::AlignLeft : Qt::AlignRight) |
                            Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  const bool tip = role == Qt::ToolTipRole;
  if (is_category(section)) {
    QString name = category_text(static_cast<MemoryCategory>(category_at(section)));
    if (tip) return tr("Memory of %1 when the total was largest; italic: predicted").arg(name);
    return name.startsWith(u"kv "_s) ? QString(u"KV"_s + name.mid(2)) : QString(name.left(1).toUpper() + name.mid(1));
  }
  switch (section) {
    case workload:
      return tr("Workload");
    case batch:
      return tip ? tr("Rows of the batch") : tr("Batch");
    case time:
      return tip ? tr("Of the whole batch, measured") : tr("Time");
    case per_token:
      return tip ? tr("Time by tokens: generated ones of a rollout, scored ones of a forward") : tr("Time/Token");
    case prefill:
      return tip ? tr("Of a rollout: until every row has its first token") : tr("Prefill");
    case step:
      return tip ? tr("Of a rollout: one more token of every row") : tr("Step");
    case speed:
      return tip ? tr("Tokens per second of all rows together") : tr("Tokens/s");
    case peak:
      return tip ? tr("Largest total memory, measured") : tr("Peak");
    case predicted:
      return tip ? tr("Peak memory as predicted before it was measured") : tr("Predicted Peak");
    case result:
      return tip ? tr("Measured, or why not") : tr("Result");
  }
  return {};
}

QString SizesModel::csv() const {
  QStringList names;
  for (int c = 0; c < columns; ++c) {
    QString name = headerData(c, Qt::Horizontal, Qt::DisplayRole).toString().toLower().replace(u' ', u'_');
    name.replace(u"/"_s, u"_per_"_s);
    const bool number = c != workload && c != result;
    if (number && quantity_of(c) == Quantity::bytes) name += u"_bytes"_s;
    if (number && quantity_of(c) == Quantity::seconds) name += u"_seconds"_s;
    names << csv_cell(name);
  }
  QString out = names.join(u',') + u"\r\n"_s;
  for (const auto& p : rows_) {
    QStringList cells;
    for (int c = 0; c < columns; ++c) {
      const auto v = value(p, c);
      cells << (c == workload ? qs(to_string(p.workload))
                : c == result ? csv_cell(text(p, c))
                : !v          ? QString()
                              : QString::number(*v, 'g', 17));
    }
    out += cells.join(u',') + u"\r\n"_s;
  }
  return out;
}

}  // namespace mw::ui
