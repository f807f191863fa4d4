// SPDX-License-Identifier: Apache-2.0
// Reads JSON reports of GuideLLM. Errors are BENCH with the place; read_bench adds the file.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"

namespace mw::formats::bench {

std::vector<BenchSet> from_guidellm(const Json& report);

}  // namespace mw::formats::bench
