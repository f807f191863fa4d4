// SPDX-License-Identifier: Apache-2.0
// `python -m sglang.bench_serving --output-file`: one object per line, with the definitions of vLLM's `bench serve`,
// from which it was derived, and other names of some fields.
#include "core/formats/results/bench_fields.h"

namespace mw::formats::bench {
namespace {

std::string vllm_name(const std::string& key) {
  if (const size_t at = key.find("_e2e_latency_ms"); at != std::string::npos) return key.substr(0, at) + "_e2el_ms";
  if (key == "total_throughput") return "total_token_throughput";
  return key;
}

// The fields under vLLM's names. Texts of `request_rate` other than a number are traces with own times.
Json vllm_fields(const Json& run) {
  Json fields = Json::object();
  for (const auto& [key, value] : run.items()) {
    if (key == "server_info" || key == "max_itl_ms" || value.is_null()) continue;
    if (key == "request_rate" && value == "trace") continue;
    fields[vllm_name(key)] = value;
  }
  return fields;
}

int sglang_length(const BenchPoint& point, const char* asked, long total) {
  if (const std::int64_t length = count(point.rest, asked, 1 << 30);
      length > 0 && text(point.rest, "dataset_name").starts_with("random"))
    return static_cast<int>(length);
  return point.completed > 0 ? rounded_length(static_cast<double>(total) / static_cast<double>(point.completed)) : 0;
}

}  // namespace

std::vector<BenchSet> from_sglang(const std::vector<Json>& runs) {
  std::vector<BenchSet> sets;
  for (size_t i = 0; i < runs.size(); ++i)
    inside(runs.size() > 1 ? "result " + std::to_string(i + 1) : "", [&] {
      if (!runs[i].is_object()) bad("", runs[i], "an object with the fields of sglang.bench_serving");
      BenchPoint point = bench_point(vllm_fields(runs[i]));
      point.input_len = sglang_length(point, "random_input_len", point.total_input_tokens);
      point.output_len = sglang_length(point, "random_output_len", point.total_output_tokens);
      const Json& server = object_at(runs[i], "server_info");
      BenchSet facts{.tool = "sglang.bench_serving", .model = text(server, "model_path")};
      if (const std::string version = text(server, "version"); !version.empty()) facts.conditions["version"] = version;
      if (const std::int64_t tp = count(server, "tp_size", 1 << 20); tp > 0)
        facts.conditions["tp"] = std::to_string(tp);
      for (const auto& [key, condition] :
           {std::pair("backend", "backend"), {"dataset_name", "dataset"}, {"tag", "tag"}})
        if (const std::string value = text(point.rest, key); !value.empty()) {
          facts.conditions[condition] = value;
          point.rest.erase(key);
        }
      facts.name = facts.model;
      find_or_add_set(sets, facts).points.push_back(std::move(point));
    });
  return sets;
}

}  // namespace mw::formats::bench
