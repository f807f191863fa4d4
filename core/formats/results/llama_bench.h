// SPDX-License-Identifier: Apache-2.0
// Reads results of llama-bench. Errors are BENCH with the place; read_bench adds the file.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/formats/results/csv.h"

namespace mw::formats::bench {

std::vector<BenchSet> from_llama_bench(const std::vector<Json>& tests);
std::vector<Json> llama_bench_rows(const CsvTable& table);  // the CSV form as JSON rows

}  // namespace mw::formats::bench
