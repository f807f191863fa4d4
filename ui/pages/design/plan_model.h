// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the figures of the plan, compared with a pinned design if there is one.
#pragma once
#include "core/views/design_view.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class PlanModel : public TableModel<views::PlanLine> {
 public:
  enum Column { figure, value, pinned, change, detail };
  PlanModel();
  void show(std::vector<views::PlanLine> lines, std::vector<views::PlanLine> baseline, bool stale);
  bool has_pinned() const { return !pinned_.empty(); }

 private:
  const views::PlanLine* pinned_line(const views::PlanLine& line) const;  // of the same label in the pinned design
  QVariant cell(const views::PlanLine& line, int column, int role) const;
  std::vector<views::PlanLine> pinned_;
  bool stale_ = false;
};

}  // namespace mw::ui
