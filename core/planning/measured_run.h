// SPDX-License-Identifier: Apache-2.0
// A run of the store as a row to calibrate with: what the planner would have said of it stands beside what it took.
#pragma once
#include "core/hardware/catalogue.h"
#include "core/plan/calibration/measurements.h"
#include "core/store/store.h"

namespace mw::planning {

// Real tokens per second, the median over the steps after the first. The request is that of the frozen experiment with
// the row length that the run had on average. Throws Error CALIBRATION for a run that is no training or has fewer than
// three steps.
plan::Measurement measured_run(const store::Store& store, const store::RunId& run, const hardware::Catalogue& catalogue,
                               plan::MeasurementUse purpose = plan::MeasurementUse::calibration);

}  // namespace mw::planning
