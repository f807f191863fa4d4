// SPDX-License-Identifier: GPL-3.0-or-later
// The plans that a search found as rows: best first, sortable by every column through a proxy.
#pragma once
#include <memory>

#include "core/planning/search_experiment.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class CandidatesModel : public TableModel<plan::Candidate> {
 public:
  enum Column { pareto, target, mesh, batch, remat, loss, step, speed, hours, usd, memory };
  CandidatesModel();
  void show(const std::shared_ptr<const planning::ExperimentSearch>& found);  // may be null
  bool is_column_used(int column) const;  // false: it has the same value in every row

 private:
  QVariant cell(const plan::Candidate& c, int column, int role) const;
  plan::Work work_ = plan::Work::train;
};

}  // namespace mw::ui
