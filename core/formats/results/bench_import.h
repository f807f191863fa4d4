// SPDX-License-Identifier: Apache-2.0
// Results of other tools' serving benchmarks as BenchSets: vLLM bench serve (plain, detailed, appended: one object a
// line), GuideLLM's JSON, llama-bench's JSON and JSONL, CSV with a mapping, and this program's own. Any thread. Throws
// Error BENCH or BENCH-KIND naming file, place, found, expected; nothing in a file is trusted.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"

namespace mw::formats {

enum class BenchKind { none, own, vllm, guidellm, llama_bench, csv };
std::string_view to_string(BenchKind kind);
BenchKind bench_kind(const std::filesystem::path& file);  // by content; none: no result file

struct CsvMapping {  // BenchPoint field (vLLM's name) -> column; empty: columns are named as vLLM names them
  std::map<std::string, std::string> columns{};
};
// One set for each configuration in the file. Definitions are those of the tool.
std::vector<BenchSet> read_bench(const std::filesystem::path& file, const CsvMapping& mapping = {});

}  // namespace mw::formats
