// SPDX-License-Identifier: Apache-2.0
// Compares the serving simulator with published measurements by simulating each measured load on the cost model. Not
// thread-safe.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/serve/load/load.h"

namespace mw::serve {

// Returns the load of a measurement; ten requests per user if the measurement does not state the number.
LoadSettings load_of(const plan::Measurement& row);
// Simulates the measurement on a server with an empty prefix cache, with the efficiencies of its request.
formats::BenchPoint simulate(const plan::Measurement& row);
// One entry per measurement; training rows have {} and are not steady.
struct Accuracy {
  std::vector<plan::Comparison> figures;
  // Whether the simulated server kept up with a continuous load: neither burst nor overload.
  std::vector<bool> steady;
};
// Simulates rows that share a load only once.
Accuracy simulate_all(const std::vector<plan::Measurement>& rows, const plan::Calibration& calibration);

}  // namespace mw::serve
