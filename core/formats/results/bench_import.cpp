// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_import.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/results/bench_fields.h"

namespace mw::formats {
namespace {

constexpr std::uint64_t kMostBytes = 256ull << 20;  // parsed JSON takes several times as much memory
constexpr size_t kDetectBytes = 4 << 20;            // examined by bench_kind

BenchKind kind_of_keys(const std::set<std::string>& keys) {
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return keys.contains(name); });
  };
  if (keys.contains("sets") || (keys.contains("points") && (all({"format"}) || all({"provenance"}))))
    return BenchKind::own;
  const bool alone = keys.size() == 1;  // GuideLLM 0.3 and older
  if (keys.contains("benchmarks") && (alone || all({"metadata"}) || all({"args"}) || all({"config"})))
    return BenchKind::guidellm;
  if (all({"n_prompt", "n_gen"}) && (all({"avg_ns"}) || all({"avg_ts"}))) return BenchKind::llama_bench;
  if (all({"load_summary", "successes"})) return BenchKind::inference_perf;
  if (all({"request_throughput", "input_config"}) || all({"request_throughput", "aiperf_version"}))
    return BenchKind::aiperf;
  if (all({"results_ttft_s_mean"}) || all({"ttft_s", "inter_token_latency_s", "end_to_end_latency_s"}))
    return BenchKind::llmperf;
  if (all({"output_throughput"}) && (all({"mean_e2e_latency_ms"}) || all({"total_output_tokens_retokenized"})))
    return BenchKind::sglang;
  if (all({"output_throughput"}) && (all({"completed"}) || all({"duration"}))) return BenchKind::vllm;
  return BenchKind::none;
}

bool is_point_field(const std::string& name) {
  return name == "request_rate" || name == "output_throughput" || name == "request_throughput" || name == "completed" ||
         name.ends_with("_ttft_ms") || name.ends_with("_tpot_ms") || name.ends_with("_itl_ms") ||
         name.ends_with("_e2el_ms");
}

BenchKind kind_of_text(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return BenchKind::none;
  if (text[first] == '{' || text[first] == '[') return kind_of_keys(bench::first_keys(text));
  if (bench::is_mlperf_summary(text)) return BenchKind::mlperf;
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  std::set<std::string> names;  // not validated: a header with mistakes is still a header
  for (size_t at = 0; at <= line.size() && names.size() < 1000;) {
    const size_t comma = std::min(line.find(',', at), line.size());
    std::string name(line.substr(at, comma - at));
    std::erase_if(name, [](char c) { return c == '"' || c == '\r'; });
    names.insert(std::move(name));
    at = comma + 1;
  }
  if (kind_of_keys(names) == BenchKind::llama_bench) return BenchKind::llama_bench;
  return std::count_if(names.begin(), names.end(), is_point_field) >= 2 ? BenchKind::csv : BenchKind::none;
}

std::vector<BenchSet> own_sets(const std::vector<Json>& values) {
  std::vector<BenchSet> sets;
  const auto add = [&](const Json& list, const std::string& place) {
    for (size_t i = 0; i < list.size(); ++i)
      sets.push_back(bench::inside(place + "[" + std::to_string(i) + "]", [&] { return bench_set(list[i]); }));
  };
  for (const Json& value : values) {
    if (value.is_array())
      add(value, "");
    else if (const Json* list = value.is_object() ? bench::list(value, "sets") : nullptr)
      add(*list, "sets");
    else
      sets.push_back(bench_set(value));
  }
  return sets;
}

std::vector<Json> flat(const std::vector<Json>& values) {  // a top-level list is equivalent to one object per line
  std::vector<Json> all;
  for (const Json& value : values)
    if (value.is_array())
      all.insert(all.end(), value.begin(), value.end());
    else
      all.push_back(value);
  return all;
}

std::vector<BenchSet> each_report(const std::vector<Json>& reports, std::vector<BenchSet> (*read)(const Json&)) {
  std::vector<BenchSet> all;
  for (const Json& report : reports)
    for (BenchSet& set : read(report)) all.push_back(std::move(set));
  return all;
}

[[noreturn]] void unknown_kind(const std::string& file, std::string_view text) {
  const std::set<std::string> keys = bench::first_keys(text);
  const std::string found = joined(keys);
  const bool pytorch = keys.contains("benchmark") && keys.contains("metric");
  throw Error("BENCH-KIND", "the file is not a known benchmark result",
              {.file = file,
               .found = found.empty() ? valid_utf8(text.substr(0, 40)) : "keys " + valid_utf8(found).substr(0, 120),
               .expected = "a result of vllm bench serve, GuideLLM (JSON), llama-bench (JSON, JSONL, CSV), AIPerf, "
                           "inference-perf, SGLang bench_serving, MLPerf LoadGen (summary), LLMPerf or Meshwright, or "
                           "CSV with vLLM's field names",
               .fix = pytorch ? "use the file without .pytorch: this one is for the PyTorch dashboard"
                              : "map the columns of a CSV file with other names (--column FIELD=COLUMN)"});
}

std::vector<BenchSet> read_as(BenchKind kind, const std::string& text, const std::string& file,
                              const CsvMapping& mapping) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && (text[first] == '{' || text[first] == '[');
  switch (kind) {
    case BenchKind::own:
      return own_sets(bench::read_values(text, file));
    case BenchKind::vllm:
      return bench::from_vllm(flat(bench::read_values(text, file)));
    case BenchKind::guidellm:
      return each_report(flat(bench::read_values(text, file)), bench::from_guidellm);
    case BenchKind::inference_perf:
      return each_report(flat(bench::read_values(text, file)), bench::from_inference_perf);
    case BenchKind::aiperf:
      return bench::from_aiperf(flat(bench::read_values(text, file)));
    case BenchKind::sglang:
      return bench::from_sglang(flat(bench::read_values(text, file)));
    case BenchKind::mlperf:
      return bench::from_mlperf(text);
    case BenchKind::llmperf:
      return bench::from_llmperf(flat(bench::read_values(text, file)));
    case BenchKind::llama_bench:
      return bench::from_llama_bench(json ? flat(bench::read_values(text, file))
                                          : bench::llama_bench_rows(read_csv(text, file)));
    case BenchKind::csv:
      return bench::from_csv(read_csv(text, file), mapping);
    case BenchKind::none:
      break;
  }
  unknown_kind(file, text);
}

}  // namespace

BenchKind bench_kind(const std::filesystem::path& file) {
  std::string_view text;
  const std::string beginning = read_beginning(file, kDetectBytes);
  try {
    text = without_byte_order_mark(beginning, file.string());
  } catch (const Error&) {  // wrong encoding: read_bench reports it
  }
  return kind_of_text(text);
}

std::vector<BenchSet> read_bench(const std::filesystem::path& path, const CsvMapping& mapping) {
  const std::string file = path.string(), text = read_text(path, kMostBytes);
  BenchKind kind = kind_of_text(std::string_view(text).substr(0, kDetectBytes));
  if (!mapping.columns.empty()) kind = BenchKind::csv;
  try {
    std::vector<BenchSet> sets = read_as(kind, text, file, mapping);
    size_t points = 0;
    for (BenchSet& set : sets) {
      points += set.points.size();
      if (set.source.empty()) set.source = file;
      if (set.name.empty()) set.name = path.stem().string();
    }
    if (points == 0) throw Error("BENCH", "the file contains no measured point", {.expected = "at least one"});
    number_equal_names(sets);
    return sets;
  } catch (const Error& error) {
    Problem problem = error.problem();
    if (problem.file.empty()) problem.file = file;
    throw Error(problem, error.kind());
  }
}

}  // namespace mw::formats
