// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/plan_model.h"

#include "ui/theme/theme.h"

namespace mw::ui {

using views::PlanLine;

PlanModel::PlanModel()
    : TableModel(
          {{.title = tr("Plan"), .text = [](const PlanLine& l) { return qs(l.label); }},
           {.title = tr("Predicted"), .text = [](const PlanLine& l) { return qs(l.value); }},
           {.title = tr("Pinned"),
            .text = [this](const PlanLine& l) { return pinned_line(l) ? qs(pinned_line(l)->value) : QString(); }},
           {.title = tr("Change"),
            .alignment = Qt::AlignRight,
            .text =
                [this](const PlanLine& l) { return pinned_line(l) ? qs(difference(*pinned_line(l), l)) : QString(); }},
           {.title = tr("Details"), .text = [](const PlanLine& l) { return qs(l.detail); }}},
          [this](const PlanLine& line, int column, int role) { return cell(line, column, role); }) {}

void PlanModel::show(std::vector<PlanLine> lines, std::vector<PlanLine> baseline, bool stale) {
  pinned_ = std::move(baseline);
  stale_ = stale;
  set_rows(std::move(lines), [](const PlanLine& a, const PlanLine& b) { return a.label == b.label; });
}

const PlanLine* PlanModel::pinned_line(const PlanLine& line) const {
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](const auto& p) { return p.label == line.label; });
  return at == pinned_.end() ? nullptr : &*at;
}

QVariant PlanModel::cell(const PlanLine& line, int column, int role) const {
  if (role == Qt::ToolTipRole) {
    QStringList parts{text(line, column)};
    if (!line.detail.empty() && column != detail) parts << qs(line.detail);
    parts << (line.estimate ? qs(views::provenance(*line.estimate)) : tr("predicted"));
    return parts.join(u'\n');
  }
  if (role != Qt::ForegroundRole) return {};
  const Theme& t = theme();
  if (stale_) return t.faint;
  if (column == figure || column == detail || column == pinned) return t.muted;
  if (column != value) return {};
  switch (line.tone) {
    case PlanLine::Tone::bad:
      return t.bad;
    case PlanLine::Tone::warn:
      return t.warn;
    case PlanLine::Tone::good:
      return t.good;
    default:
      return {};
  }
}

}  // namespace mw::ui
