// SPDX-License-Identifier: Apache-2.0
// The readers of the tools' files, one .cpp file per tool. Errors are BENCH with the place; read_bench adds the file.
#pragma once
#include <string_view>
#include <vector>

#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"

namespace mw::formats::bench {

// `vllm bench serve` and `vllm bench sweep`: each run is one saved object. Runs with the same conditions become points
// of one set.
std::vector<BenchSet> from_vllm(const std::vector<Json>& runs);
std::vector<BenchSet> from_guidellm(const Json& report);
std::vector<BenchSet> from_llama_bench(const std::vector<Json>& tests);
std::vector<Json> llama_bench_rows(const CsvTable& table);  // the CSV form as JSON rows
std::vector<BenchSet> from_aiperf(const std::vector<Json>& reports);
std::vector<BenchSet> from_inference_perf(const Json& report);
std::vector<BenchSet> from_sglang(const std::vector<Json>& runs);
bool is_mlperf_summary(std::string_view text);
std::vector<BenchSet> from_mlperf(std::string_view text);             // of which is_mlperf_summary is true
std::vector<BenchSet> from_llmperf(const std::vector<Json>& values);  // summaries, or the responses of one run
std::vector<BenchSet> from_csv(const CsvTable& table, const CsvMapping& mapping);  // one point per row

}  // namespace mw::formats::bench
