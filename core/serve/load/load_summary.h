// SPDX-License-Identifier: Apache-2.0
// The metrics of a load point, defined as in `vllm bench serve`. Pure functions; any thread.
#pragma once
#include "core/serve/load/load_backend.h"

namespace mw::serve {

struct Slo {  // limits in ms; 0: none
  double ttft_ms = 0, tpot_ms = 0, e2e_ms = 0;
  bool any() const { return ttft_ms > 0 || tpot_ms > 0 || e2e_ms > 0; }
};

// Computes all metrics of a point from its requests. Failed requests are counted but not timed.
formats::BenchPoint summarise(const Load& load, const LoadResult& result, const Slo& slo);

}  // namespace mw::serve
