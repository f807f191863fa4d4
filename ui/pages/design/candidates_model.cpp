// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/candidates_model.h"

#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

bool is_number(int column) {
  return column >= CandidatesModel::step;
}

}  // namespace

void CandidatesModel::show(std::shared_ptr<const planning::ExperimentSearch> found) {
  beginResetModel();
  found_ = std::move(found);
  endResetModel();
}

// Columns that say the same in every row are left out.
bool CandidatesModel::column_used(int column) const {
  if (!found_ || rowCount() == 0) return true;
  if (column == remat || column == loss) return !serving();
  if (column == target || column == usd)
    return std::any_of(found_->result.candidates.begin(), found_->result.candidates.end(), [&](const auto& c) {
      return column == usd ? c.usd > 0 : c.choice.target != candidate(0).choice.target;
    });
  return true;
}

int CandidatesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !found_ ? 0 : static_cast<int>(found_->result.candidates.size());
}

int CandidatesModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant CandidatesModel::number(const plan::Candidate& c, int column) const {
  switch (column) {
    case pareto:
      return c.pareto ? 0 : 1;
    case step:
      return c.seconds;
    case speed:
      return c.tokens_per_second;
    case hours:
      return c.hours;
    case usd:
      return c.usd;
    case memory:
      return static_cast<double>(c.peak.value);
    default:
      return text(c, column);
  }
}

QString CandidatesModel::text(const plan::Candidate& c, int column) const {
  const plan::PlanChoice& o = c.choice;
  switch (column) {
    case pareto:
      return c.pareto ? u"\u25CF"_s : QString();
    case target:
      return qs(o.target);
    case mesh:
      return qs(mesh::to_text(o.mesh));
    case batch:
      return serving() ? QString::number(o.max_num_seqs) : tr("%1 \u00D7 %2").arg(o.batch).arg(o.accumulation);
    case remat:
      return qs(to_string(o.remat));
    case loss:
      return o.loss_chunk > 0 ? tr("by %1").arg(o.loss_chunk) : tr("full");
    case step:
      return qs(to_text(Seconds(c.seconds)));
    case speed:
      return qs(count_text(c.tokens_per_second));
    case hours:
      return qs(to_text(Seconds(c.hours * 3600)));
    case usd:
      return qs(to_text(Usd(c.usd)));
    case memory:
      return qs(to_text(c.peak));
  }
  return {};
}

QVariant CandidatesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !found_) return {};
  const plan::Candidate& c = candidate(index.row());
  switch (role) {
    case Qt::DisplayRole:
      return text(c, index.column());
    case value_role:
      return number(c, index.column());
    case Qt::ForegroundRole:
      return index.column() == pareto ? QVariant(theme().accent) : QVariant();
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (index.column() == pareto    ? Qt::AlignHCenter
                                          : is_number(index.column()) ? Qt::AlignRight
                                                                      : Qt::AlignLeft));
    case Qt::ToolTipRole:
      return tr("%1\npredicted: %2 a step, %3 of %4%5\nEnter or double-click applies it")
          .arg(qs(plan::to_text(c.choice, found_->request.work)), qs(to_text(Seconds(c.seconds))), qs(to_text(c.peak)),
               qs(to_text(c.capacity)), c.pareto ? tr("\non the Pareto front of time, cost and memory") : QString());
    default:
      return {};
  }
}

QVariant CandidatesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::ToolTipRole && section == pareto)
    return tr("On the Pareto front: no other plan is as good in time, cost and memory, and better in one");
  if (role == Qt::TextAlignmentRole && is_number(section)) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const QString names[] = {tr("\u25CF"), tr("Target"),   tr("Mesh"), tr("Batch"), tr("Remat"), tr("Logits"),
                           tr("Step"),   tr("Tokens/s"), tr("Run"),  tr("Cost"),  tr("Memory")};
  return names[section];
}

}  // namespace mw::ui
