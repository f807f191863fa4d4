// SPDX-License-Identifier: Apache-2.0
// Reads results of serving benchmarks: vLLM bench serve (also detailed or with one object per line), GuideLLM JSON,
// llama-bench JSON, JSONL and CSV, AIPerf, inference-perf, SGLang bench_serving, MLPerf LoadGen summaries, LLMPerf, CSV
// with a column mapping, and Meshwright's own format. Errors are BENCH or BENCH-KIND and name file and place.
// Thread-safe.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"

namespace mw::formats {

enum class BenchKind { none, own, vllm, guidellm, llama_bench, aiperf, inference_perf, sglang, mlperf, llmperf, csv };
BenchKind bench_kind(const std::filesystem::path& file);  // by content; none: unknown

struct CsvMapping {  // vLLM's name of a field -> column; columns that are not mapped have vLLM's names
  std::map<std::string, std::string> columns{};
};
// One set per configuration in the file, with the definitions of the tool.
std::vector<BenchSet> read_bench(const std::filesystem::path& file, const CsvMapping& mapping = {});

}  // namespace mw::formats

template <>
inline constexpr mw::EnumNames<11> mw::kEnumNames<mw::formats::BenchKind>{
    "no result",      "Meshwright results",   "vLLM bench",     "GuideLLM", "llama-bench", "AIPerf",
    "inference-perf", "SGLang bench_serving", "MLPerf LoadGen", "LLMPerf",  "CSV"};
