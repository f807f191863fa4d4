// SPDX-License-Identifier: Apache-2.0
// Reads files with several JSON values and with Python's non-finite numbers. Reads members of a result and checks types
// and ranges; missing and null values are unknown. Errors are BENCH and name the field; read_bench adds the file.
// Thread-safe.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"

namespace mw::formats::bench {

inline constexpr std::int64_t kMost = 1'000'000'000'000'000;  // limit of counts; below 2^53

[[noreturn]] void bad(const std::string& place, const Json& found, const std::string& expected);

// A finite number of at least `least`; kUnknown if missing or null.
double number(const Json& object, const std::string& key, double least = 0);
double number_of(const Json& value, const std::string& place, double least = 0);
std::int64_t count(const Json& object, const std::string& key, std::int64_t most = kMost);  // 0 if missing or null
std::int64_t count_of(const Json& value, const std::string& place, std::int64_t most = kMost);
std::string text(const Json& object, const std::string& key);  // empty if missing or null
std::string text_of(const Json& value, const std::string& place);
const Json* list(const Json& object, const std::string& key);       // nullptr if missing or null
const Json& object_at(const Json& object, const std::string& key);  // an empty object if missing or null
int rounded_length(double mean);  // a mean of tokens as a length; 0 if unknown or out of range

// Runs `read` and prepends `place` to the place in its errors: "points[3].duration", "line 7: duration".
template <class Read>
auto inside(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    Problem problem = error.problem();
    const char* const join = place.empty() || problem.place.empty() ? ""
                             : place.find(' ') == std::string::npos ? "."
                                                                    : ": ";
    problem.place = place + join + problem.place;
    throw Error(problem, error.kind());
  }
}

// Calls use(entry) for every entry of a list, which may be null, inside "key[i]". Entries must be objects: `expected`.
template <class Use>
void each_object(const Json* list, const std::string& key, const std::string& expected, const Use& use) {
  for (size_t i = 0; list && i < list->size(); ++i)
    inside(key + "[" + std::to_string(i) + "]", [&] {
      if (!(*list)[i].is_object()) bad("", (*list)[i], expected);
      use((*list)[i]);
    });
}

// The readers of the tools' files, one .cpp file per tool. Errors are BENCH with the place; read_bench adds the file.

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

// Keys of the first top-level object, or of the first object in a top-level list; the text may be cut off.
std::set<std::string> first_keys(std::string_view text);

// Consecutive values of a file (vLLM's --append-result, JSONL). NaN becomes null, Infinity becomes "inf". Throws JSON
// with line and column in the file.
std::vector<Json> read_values(std::string_view text, const std::string& file);

}  // namespace mw::formats::bench
