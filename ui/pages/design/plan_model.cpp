// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/plan_model.h"

#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

void PlanModel::show(std::vector<views::PlanLine> lines, std::vector<views::PlanLine> baseline, bool stale) {
  const auto same = [](const auto& a, const auto& b) { return a.label == b.label; };
  const bool keeps = std::equal(lines.begin(), lines.end(), lines_.begin(), lines_.end(), same);
  if (!keeps) beginResetModel();
  lines_ = std::move(lines);
  pinned_ = std::move(baseline);
  stale_ = stale;
  if (!keeps)
    endResetModel();
  else if (!lines_.empty())
    emit dataChanged(index(0, 0), index(rowCount() - 1, columns - 1));
}

int PlanModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(lines_.size());
}

int PlanModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

const views::PlanLine* PlanModel::beside(const views::PlanLine& line) const {
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](const auto& p) { return p.label == line.label; });
  return at == pinned_.end() ? nullptr : &*at;
}

QString PlanModel::text(const views::PlanLine& line, int column) const {
  const views::PlanLine* other = beside(line);
  switch (column) {
    case figure:
      return qs(line.label);
    case value:
      return qs(line.value);
    case pinned:
      return other ? qs(other->value) : QString();
    case change:
      return other ? qs(difference(*other, line)) : QString();
    case detail:
      return qs(line.detail);
  }
  return {};
}

QVariant PlanModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const views::PlanLine& line = lines_[static_cast<size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
      return text(line, index.column());
    case Qt::ToolTipRole: {
      QStringList parts{text(line, index.column())};
      if (!line.detail.empty() && index.column() != detail) parts << qs(line.detail);
      parts << (line.estimate ? qs(views::provenance(*line.estimate)) : tr("predicted"));
      return parts.join(u'\n');
    }
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (index.column() == change ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ForegroundRole: {
      const Theme& t = theme();
      if (stale_) return t.faint;
      if (index.column() == figure || index.column() == detail || index.column() == pinned) return t.muted;
      if (index.column() != value) return {};
      if (line.tone == views::PlanLine::Tone::bad) return t.bad;
      if (line.tone == views::PlanLine::Tone::warn) return t.warn;
      if (line.tone == views::PlanLine::Tone::good) return t.good;
      return {};
    }
    default:
      return {};
  }
}

QVariant PlanModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Plan"), tr("Predicted"), tr("Pinned"), tr("Change"), tr("Of Which")};
  return names[section];
}

}  // namespace mw::ui
