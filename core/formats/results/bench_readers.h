// SPDX-License-Identifier: Apache-2.0
// The readers of the tools' files, one .cpp file per tool. Errors are BENCH with the place; read_bench adds the file.
#pragma once
#include <vector>

#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"

namespace mw::formats::bench {

// `vllm bench serve` and `vllm bench sweep`: each run is one saved object. Runs with the same conditions become points
// of one set.
std::vector<BenchSet> from_vllm(const std::vector<Json>& runs);
std::vector<BenchSet> from_guidellm(const Json& report);
std::vector<BenchSet> from_llama_bench(const std::vector<Json>& tests);
std::vector<Json> llama_bench_rows(const CsvTable& table);                         // the CSV form as JSON rows
std::vector<BenchSet> from_csv(const CsvTable& table, const CsvMapping& mapping);  // one point per row

}  // namespace mw::formats::bench
