// SPDX-License-Identifier: Apache-2.0
// `vllm bench serve --save-result` and `vllm bench sweep` (summary.json, run=K.json); fields: vllm/benchmarks/serve.py.
#include "core/formats/results/bench_fields.h"

#include <cmath>
#include <map>
#include <set>

#include "core/base/error.h"

namespace mw::formats::bench {
namespace {

// Server settings that sweeps write at the top level -> names of conditions.
const std::map<std::string, std::string>& condition_names() {
  static const std::map<std::string, std::string> names{{"tokenizer_id", "tokenizer"},
                                                        {"tensor_parallel_size", "tp"},
                                                        {"data_parallel_size", "dp"},
                                                        {"pipeline_parallel_size", "pp"},
                                                        {"kv_cache_dtype", "kv_dtype"},
                                                        {"dtype", "weight_dtype"},
                                                        {"enable_prefix_caching", "prefix_cache"},
                                                        {"enable_chunked_prefill", "chunked_prefill"},
                                                        {"max_num_seqs", "max_num_seqs"},
                                                        {"max_num_batched_tokens", "max_num_batched_tokens"},
                                                        {"max_model_len", "max_model_len"},
                                                        {"vllm_version", "version"}};
  return names;
}

// Texts that may differ between points of one configuration.
const std::set<std::string>& not_conditions() {
  static const std::set<std::string> names{"date", "model_id", "label", "_benchmark_name"};
  return names;
}

std::string condition_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.dump();
}

// Moves metadata, which are texts, to the conditions of the set; results are numbers or lists.
void move_conditions(BenchSet& facts, BenchPoint& point) {
  Json rest = Json::object();
  for (const auto& [key, value] : point.rest.items()) {
    const auto named = condition_names().find(key);
    const bool scalar = value.is_string() || value.is_number() || value.is_boolean();
    if (named != condition_names().end() && scalar)
      facts.conditions[named->second] = condition_text(value);
    else if (value.is_string() && !not_conditions().contains(key))
      facts.conditions[key] = value.get<std::string>();
    else
      rest[key] = value;
  }
  point.rest = std::move(rest);
}

int asked_length(const BenchPoint& point, std::initializer_list<const char*> names, long total) {
  for (const char* name : names)
    if (const std::int64_t asked = count(point.rest, name, 1 << 30); asked > 0) return static_cast<int>(asked);
  if (point.completed <= 0) return 0;
  const double mean = static_cast<double>(total) / static_cast<double>(point.completed);
  return mean < 1 << 30 ? static_cast<int>(std::lround(mean)) : 0;
}

BenchPoint point_of(const Json& run) {
  BenchPoint point = bench_point(run);
  if (point.input_len == 0)
    point.input_len = asked_length(point, {"random_input_len", "sonnet_input_len"}, point.total_input_tokens);
  if (point.output_len == 0)
    point.output_len = asked_length(
        point, {"random_output_len", "sonnet_output_len", "sharegpt_output_len", "hf_output_len", "custom_output_len"},
        point.total_output_tokens);
  // Older versions of vLLM do not count failures: all requests that did not complete have failed.
  if (!run.contains("failed") && point.num_prompts > point.completed)
    point.failed = point.num_prompts - point.completed;
  return point;
}

}  // namespace

std::vector<BenchSet> from_vllm(const std::vector<Json>& runs) {
  std::vector<BenchSet> sets;
  for (size_t i = 0; i < runs.size(); ++i)
    inside(runs.size() > 1 ? "result " + std::to_string(i + 1) : "", [&] {
      BenchPoint point = point_of(runs[i]);
      BenchSet facts{.tool = "vllm bench serve", .model = text(runs[i], "model_id")};
      facts.name = facts.model;
      if (const auto label = runs[i].find("label"); label != runs[i].end() && label->is_string())
        facts.name = label->get<std::string>();
      move_conditions(facts, point);
      if (const auto version = facts.conditions.find("version"); version != facts.conditions.end())
        facts.tool += " " + version->second;
      find_or_add_set(sets, facts).points.push_back(std::move(point));
    });
  return sets;
}

}  // namespace mw::formats::bench
