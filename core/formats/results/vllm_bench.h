// SPDX-License-Identifier: Apache-2.0
// Reads results of `vllm bench serve` and `vllm bench sweep`. Errors are BENCH with the place; read_bench adds the
// file.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"

namespace mw::formats::bench {

// Each run is one saved object. Runs with the same conditions become points of one set.
std::vector<BenchSet> from_vllm(const std::vector<Json>& runs);

}  // namespace mw::formats::bench
