// SPDX-License-Identifier: Apache-2.0
// The simulator against published servers: each measured load played on the cost model. One thread.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/serve/load/load.h"

namespace mw::serve {

// The load that a row was measured under. Ten requests for each user where it does not say.
LoadSettings load_of(const plan::Measurement& row);
// Played on an empty server: no prompt is known to its prefix cache. Efficiencies as the row's request has them.
formats::BenchPoint simulate(const plan::Measurement& row);
// By row; those that are not of serving are left as they are ({}, not steady).
struct Accuracy {
  std::vector<plan::Comparison> figures;
  // Of a load that went on while it was measured and was kept up with: no burst, no overload (as the simulator judges).
  std::vector<bool> steady;
};
// Rows of one load are played once.
Accuracy simulate_all(const std::vector<plan::Measurement>& rows, const plan::Calibration& calibration);

}  // namespace mw::serve
