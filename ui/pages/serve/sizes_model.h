// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the points of a size run.
#pragma once
#include <QCoreApplication>

#include "ui/pages/serve/size_lines.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class SizesModel : public TableModel<serve::SizePoint> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::SizesModel)
 public:
  // One column for each memory category follows `step`.
  enum Column { workload, batch, time, per_token, speed, peak, predicted, result, prefill, step, categories };
  static constexpr int columns = categories + static_cast<int>(kMemoryCategories);
  SizesModel();
  void show(SizeViewPtr view);
  bool is_column_used(int column) const;  // false: a memory category that no point uses

 private:
  SizeViewPtr view_;
};

}  // namespace mw::ui
