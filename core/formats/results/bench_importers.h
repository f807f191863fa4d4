// SPDX-License-Identifier: Apache-2.0
// Readers of one tool's results each (bench_import.h says what for). They throw Error BENCH with the place; read_bench
// adds the file. Any thread.
#pragma once
#include <string>
#include <vector>

#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"

namespace mw::formats::bench {

// `run` of vLLM: one saved object. Those with the same conditions are points of one set.
std::vector<BenchSet> from_vllm(const std::vector<Json>& runs);
std::vector<BenchSet> from_guidellm(const Json& report);
std::vector<BenchSet> from_llama_bench(const std::vector<Json>& tests);
std::vector<BenchSet> from_csv(const CsvTable& table, const CsvMapping& mapping);
std::vector<Json> llama_bench_rows(const CsvTable& table);  // numbers are numbers again

// The set that this one's facts agree with, or a new one at the end.
BenchSet& set_like(std::vector<BenchSet>& sets, const BenchSet& facts);
void number_names(std::vector<BenchSet>& sets);  // of sets that are called alike

}  // namespace mw::formats::bench
