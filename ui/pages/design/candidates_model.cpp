// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/candidates_model.h"

#include "ui/theme/theme.h"

namespace mw::ui {

using plan::Candidate;

CandidatesModel::CandidatesModel()
    : TableModel(
          {{.title = tr("\u25CF"),
            .tooltip = tr(
                "On the Pareto front: no other plan is better in time, cost or memory without being worse in another"),
            .alignment = Qt::AlignHCenter,
            .text = [](const Candidate& c) { return c.pareto ? u"\u25CF"_s : QString(); },
            .sort_key = [](const Candidate& c) { return c.pareto ? 0 : 1; }},
           {.title = tr("Target"), .text = [](const Candidate& c) { return qs(c.choice.target); }},
           {.title = tr("Mesh"), .text = [](const Candidate& c) { return qs(mesh::to_text(c.choice.mesh)); }},
           {.title = tr("Batch"),
            .text =
                [this](const Candidate& c) {
                  if (work_ != plan::Work::train) return QString::number(c.choice.max_num_seqs);
                  return tr("%1 \u00D7 %2").arg(c.choice.batch).arg(c.choice.accumulation);
                }},
           {.title = tr("Remat"), .text = [](const Candidate& c) { return qs(to_string(c.choice.remat)); }},
           {.title = tr("Logits"),
            .text =
                [](const Candidate& c) {
                  return c.choice.loss_chunk > 0 ? tr("by %1").arg(c.choice.loss_chunk) : tr("full");
                }},
           {.title = tr("Step"),
            .alignment = Qt::AlignRight,
            .text = [](const Candidate& c) { return qs(to_text(Seconds(c.seconds))); },
            .sort_key = [](const Candidate& c) { return c.seconds; }},
           {.title = tr("Tokens/s"),
            .alignment = Qt::AlignRight,
            .text = [](const Candidate& c) { return qs(count_text(c.tokens_per_second)); },
            .sort_key = [](const Candidate& c) { return c.tokens_per_second; }},
           {.title = tr("Run"),
            .alignment = Qt::AlignRight,
            .text = [](const Candidate& c) { return qs(to_text(Seconds(c.hours * 3600))); },
            .sort_key = [](const Candidate& c) { return c.hours; }},
           {.title = tr("Cost"),
            .alignment = Qt::AlignRight,
            .text = [](const Candidate& c) { return qs(to_text(Usd(c.usd))); },
            .sort_key = [](const Candidate& c) { return c.usd; }},
           {.title = tr("Memory"),
            .alignment = Qt::AlignRight,
            .text = [](const Candidate& c) { return qs(to_text(c.peak)); },
            .sort_key = [](const Candidate& c) { return static_cast<double>(c.peak.value); }}},
          [this](const Candidate& c, int column, int role) { return cell(c, column, role); }) {}

void CandidatesModel::show(const std::shared_ptr<const planning::ExperimentSearch>& found) {
  work_ = found ? found->request.work : plan::Work::train;
  set_rows(found ? found->result.candidates : std::vector<Candidate>());
}

bool CandidatesModel::is_column_used(int column) const {
  if (rows_.empty()) return true;
  if (column == remat || column == loss) return work_ == plan::Work::train;
  const auto differs = [this](auto different) { return std::any_of(rows_.begin(), rows_.end(), different); };
  if (column == usd) return differs([](const Candidate& c) { return c.usd > 0; });
  return column != target ||
         differs([this](const Candidate& c) { return c.choice.target != rows_.front().choice.target; });
}

QVariant CandidatesModel::cell(const Candidate& c, int column, int role) const {
  if (role == Qt::ForegroundRole && column == pareto) return theme().accent;
  if (role != Qt::ToolTipRole) return {};
  return tr("%1\npredicted: %2 per step, %3 of %4%5\nEnter or double-click applies it")
      .arg(qs(plan::to_text(c.choice, work_)), qs(to_text(Seconds(c.seconds))), qs(to_text(c.peak)),
           qs(to_text(c.capacity)), c.pareto ? tr("\non the Pareto front of time, cost and memory") : QString());
}

}  // namespace mw::ui
