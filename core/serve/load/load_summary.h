// SPDX-License-Identifier: Apache-2.0
// The metrics of a load point, defined as in `vllm bench serve`. Pure functions; any thread.
#pragma once
#include "core/serve/load/load_backend.h"

namespace mw::serve {

// Computes all metrics of a point from its requests. Failed requests are counted but not timed.
formats::BenchPoint summarise(const Load& load, const LoadResult& result, const Slo& slo);

// Parts of it, for a load whose requests are not kept.
double tpot_ms(const formats::RequestResult& request);  // mean per token after the first; kUnknown for a single token
bool meets(const formats::RequestResult& request, const Slo& slo);
void set_load(formats::BenchPoint& point, const LoadSettings& settings);
void set_rates(formats::BenchPoint& point, long good, const Slo& slo);  // from its counts and duration

}  // namespace mw::serve
