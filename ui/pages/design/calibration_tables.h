// SPDX-License-Identifier: GPL-3.0-or-later
// The two tables of a proposed calibration: rows predicted against measured, and the efficiencies fitted to them.
#pragma once
#include "core/planning/calibrating.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

struct CalibrationRowsModel : TableModel<plan::ProposedRow> {
  enum Column { id, chip, stack, use, measured, now, held_out, fitted, error_now, error_held_out, error_fitted };
  CalibrationRowsModel();
};

struct EfficienciesModel : TableModel<plan::ProposedEfficiency> {
  enum Column { name, chip, stack, before, after, interval, rows };
  EfficienciesModel();
};

}  // namespace mw::ui
