// SPDX-License-Identifier: Apache-2.0
// llama-bench (llama.cpp tools/llama-bench/llama-bench.cpp) runs one prompt and one answer without a server. A test of
// the prompt gives the time to first token, a test of the answer the time per token, a test of both only the total.
#include "core/formats/results/bench_fields.h"

#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::formats::bench {
namespace {

const std::set<std::string>& result_fields() {
  static const std::set<std::string> names{"n_prompt",  "n_gen",  "n_depth",   "test_time",  "avg_ns",
                                           "stddev_ns", "avg_ts", "stddev_ts", "samples_ns", "samples_ts"};
  return names;
}

std::string test_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

BenchSet test_facts(const Json& test) {
  BenchSet facts{.tool = "llama-bench", .model = text(test, "model_type")};
  facts.name = facts.model;
  for (const auto& [key, value] : test.items()) {
    if (result_fields().contains(key) || value.is_structured() || value.is_null()) continue;
    if (const std::string shown = test_text(value); !shown.empty()) facts.conditions[key] = shown;
  }
  if (const std::string commit = text(test, "build_commit"); !commit.empty()) facts.conditions["version"] = commit;
  const std::string k = text(test, "type_k"), v = text(test, "type_v");
  if (!k.empty()) facts.conditions["kv_dtype"] = k == v || v.empty() ? k : k + "/" + v;
  return facts;
}

// Times of a repetition in ms: from the samples if present, else mean and deviation.
LatencyStats times_of(const Json& test, double per) {
  const Json* samples = list(test, "samples_ns");
  std::vector<double> ms;
  for (size_t i = 0; samples && i < samples->size(); ++i)
    ms.push_back(number_of((*samples)[i], "samples_ns[" + std::to_string(i) + "]") / 1e6 / per);
  if (!ms.empty()) return latency_stats(ms);
  return {.mean = number(test, "avg_ns") / 1e6 / per, .deviation = number(test, "stddev_ns") / 1e6 / per};
}

BenchPoint test_point(const Json& test) {
  const auto prompt = static_cast<int>(count(test, "n_prompt", 1 << 30)),
             answer = static_cast<int>(count(test, "n_gen", 1 << 30)),
             depth = static_cast<int>(count(test, "n_depth", 1 << 30));
  if (prompt + answer == 0) bad("n_prompt", prompt, "a number of tokens of prompt or answer");
  BenchPoint point;
  point.max_concurrency = 1;
  point.input_len = prompt > 0 ? prompt : depth;
  point.output_len = answer;
  const Json* samples = list(test, "samples_ns");
  point.num_prompts = point.completed = samples ? static_cast<long>(samples->size()) : 1;
  point.total_input_tokens = prompt * point.completed;
  point.total_output_tokens = answer * point.completed;
  const double rate = number(test, "avg_ts");
  if (answer == 0) {
    point.ttft = times_of(test, 1);
    point.total_token_throughput = rate;
    point.note = "prompt only, pp" + std::to_string(prompt);
  } else if (prompt == 0) {
    point.tpot = times_of(test, answer);
    point.output_throughput = rate;
    point.note = "answer only, tg" + std::to_string(answer);
  } else {
    point.e2el = times_of(test, 1);
    point.total_token_throughput = rate;
    point.note = "prompt and answer, pp" + std::to_string(prompt) + "+tg" + std::to_string(answer);
  }
  if (depth > 0) {
    point.note += " at a depth of " + std::to_string(depth);
    point.rest["n_depth"] = depth;
  }
  return point;
}

Json number_again(const std::string& cell) {
  const auto value = parse_number<double>(cell);
  return value ? Json(*value) : Json(cell);
}

}  // namespace

std::vector<Json> llama_bench_rows(const CsvTable& table) {
  std::vector<Json> tests;
  for (const CsvTable::Row& row : table.rows) {
    Json test = Json::object();
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::string& name = table.header[i];
      test[name] =
          result_fields().contains(name) && name != "test_time" ? number_again(row.cells[i]) : Json(row.cells[i]);
    }
    tests.push_back(std::move(test));
  }
  return tests;
}

std::vector<BenchSet> from_llama_bench(const std::vector<Json>& tests) {
  std::vector<BenchSet> sets;
  for (size_t i = 0; i < tests.size(); ++i)
    inside("test " + std::to_string(i + 1), [&] {
      if (!tests[i].is_object()) bad("", tests[i], "an object with n_prompt, n_gen, avg_ns");
      BenchPoint point = test_point(tests[i]);
      find_or_add_set(sets, test_facts(tests[i])).points.push_back(std::move(point));
    });
  for (BenchSet& set : sets)
    set.notes.push_back(
        "one sequence without a server: no queue, no scheduler, prompt and answer are timed separately");
  return sets;
}

}  // namespace mw::formats::bench
