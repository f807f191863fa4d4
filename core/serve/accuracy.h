// SPDX-License-Identifier: Apache-2.0
// The simulator against published servers: each measured load played on the cost model. One thread.
#pragma once
#include <vector>

#include "core/formats/bench_result.h"
#include "core/plan/calibrate.h"
#include "core/serve/load.h"

namespace mw::serve {

// The load that a row was measured under. Ten requests for each user where it does not say.
LoadSettings load_of(const plan::Measurement& row);
// Played on an empty server: no prompt is known to its prefix cache. Efficiencies as the row's request has them.
formats::BenchPoint simulate(const plan::Measurement& row);
// Of the rows' serving figures; rows of one load are played once. Others are left as they are ({}).
std::vector<plan::Comparison> simulate_all(const std::vector<plan::Measurement>& rows,
                                           const plan::Calibration& calibration);

}  // namespace mw::serve
