// SPDX-License-Identifier: Apache-2.0
// Converts a run of the store to a measurement for calibration.
#pragma once
#include "core/hardware/catalogue.h"
#include "core/plan/calibration/measurements.h"
#include "core/store/store.h"

namespace mw::planning {

// Returns the median real tokens per second over all steps but the first, with the planner's request for the run's
// experiment at its mean row length. Throws RUN-UNKNOWN, or CALIBRATION for a run that is not a training run or has
// fewer than three steps.
plan::Measurement measured_run(const store::Store& store, const store::RunId& run, const hardware::Catalogue& catalogue,
                               plan::MeasurementUse purpose = plan::MeasurementUse::calibration);

}  // namespace mw::planning
