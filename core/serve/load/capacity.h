// SPDX-License-Identifier: Apache-2.0
// The request rate that a server can sustain within an SLO. Pure functions; any thread.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/load/load_summary.h"

namespace mw::serve {

struct Capacity {                          // requests/s; kUnknown: none
  double at_slo = formats::kUnknown;       // highest rate that meets the SLO, interpolated to the next measured rate
  double knee = formats::kUnknown;         // of the latency curve: farthest below its chord
  bool beyond_last = false;                // the highest measured rate meets the SLO: at_slo is a lower bound
  std::vector<double> failing_below = {};  // measured rates below at_slo that miss the SLO, ascending
};
// `same_length`: points of one input length in any order. An overloaded point never meets the SLO.
Capacity find_capacity(const std::vector<formats::BenchPoint>& same_length, const Slo& slo);

}  // namespace mw::serve
