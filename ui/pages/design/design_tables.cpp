// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/design_tables.h"

#include <QRegularExpression>

#include "ui/theme/theme.h"

namespace mw::ui {

using views::PlanLine;
using views::ShardRow;

namespace {

QString padding_text(double padding) {
  return padding < 0.0005 ? QString() : QString::number(padding * 100, 'f', padding < 0.1 ? 1 : 0) + u" %"_s;
}

}  // namespace

PlanModel::PlanModel()
    : TableModel(
          {{.title = tr("Plan"), .text = [](const PlanLine& l) { return qs(l.label); }},
           {.title = tr("Predicted"), .text = [](const PlanLine& l) { return qs(l.value); }},
           {.title = tr("Pinned"),
            .text = [this](const PlanLine& l) { return pinned_line(l) ? qs(pinned_line(l)->value) : QString(); }},
           number(tr("Change"),
                  [this](const auto& l) { return pinned_line(l) ? qs(difference(*pinned_line(l), l)) : QString(); }),
           {.title = tr("Details"), .text = &PlanLine::detail}},
          [this](const PlanLine& line, int column, int role) { return cell(line, column, role); }) {}

void PlanModel::show(std::vector<PlanLine> lines, std::vector<PlanLine> baseline, bool stale) {
  pinned_ = std::move(baseline);
  stale_ = stale;
  set_rows(std::move(lines), [](const PlanLine& a, const PlanLine& b) { return a.key == b.key; });
}

const PlanLine* PlanModel::pinned_line(const PlanLine& line) const {
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](const auto& p) { return p.key == line.key; });
  return at == pinned_.end() ? nullptr : &*at;
}

QVariant PlanModel::cell(const PlanLine& line, int column, int role) const {
  if (role == Qt::ToolTipRole) {
    QStringList parts{text(line, column)};
    if (!line.detail.empty() && column != detail) parts << qs(line.detail);
    if (const PlanLine* other = pinned_line(line); other && column != pinned)
      parts << tr("pinned: %1").arg(qs(other->value));
    parts << (line.estimate ? qs(views::provenance(*line.estimate)) : tr("predicted"));
    return parts.join(u'\n');
  }
  if (role != Qt::ForegroundRole) return {};
  const Theme& t = theme();
  if (stale_) return t.faint;
  if (column == figure || column == detail || column == pinned) return t.muted;
  if (column != value) return {};
  using Tone = PlanLine::Tone;
  if (line.tone == Tone::bad) return t.bad;
  if (line.tone == Tone::warn) return t.warn;
  return line.tone == Tone::good ? QVariant(t.good) : QVariant();
}

ShardsModel::ShardsModel()
    : TableModel({{.title = tr("Tensor"), .text = [](const ShardRow& r) { return qs(r.name); }},
                  {.title = tr("Spec"), .text = [](const ShardRow& r) { return qs(mesh::to_text(r.spec)); }},
                  {.title = tr("On each device"), .text = [](const ShardRow& r) { return qs(r.shard); }},
                  number(tr("Bytes"), [](const auto& r) { return shown(r.per_device); }),
                  {.title = tr("Difference"),
                   .tooltip = tr("Bytes compared with the pinned design, and its spec if it was another"),
                   .text = [this](const ShardRow& r) { return change_text(r); }},
                  number(tr("Count"), [](const auto& r) { return QString::number(r.count); }),
                  {.title = tr("Shape"), .text = [](const ShardRow& r) { return qs(r.shape); }},
                  {.title = tr("Padding"),
                   .tooltip = tr("Bytes added by memory tiles and uneven pieces"),
                   .alignment = Qt::AlignRight,
                   .text = [](const ShardRow& r) { return padding_text(r.padding); }},
                  {.title = tr("Copies"),
                   .tooltip = tr("Number of devices with the same piece"),
                   .alignment = Qt::AlignRight,
                   .text = [](const ShardRow& r) { return QString::number(r.replicas); }},
                  {.title = tr("Rule"), .text = [](const ShardRow& r) { return qs(r.rule); }}},
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

QString ShardsModel::change_text(const ShardRow& row) const {
  if (pinned_.empty()) return {};
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](const auto& p) { return p.first == row.first; });
  return qs(difference(at == pinned_.end() ? nullptr : &*at, row));
}

QVariant ShardsModel::cell(const ShardRow& r, int column, int role) const {
  if (role == Qt::ForegroundRole) {
    if (stale_) return theme().faint;
    if (column == change) return change_text(r) == u"same"_s ? theme().muted : theme().accent;
    return column == rule || column == shape ? QVariant(theme().muted) : QVariant();
  }
  if (role != Qt::ToolTipRole || column != spec) return {};
  return tr("%1\nDouble-click or press F2 to enter another spec: axes, or - for not sharded").arg(text(r, column));
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

#include "moc_design_tables.cpp"
