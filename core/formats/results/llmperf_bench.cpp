// SPDX-License-Identifier: Apache-2.0
// LLMPerf (ray-project): *_summary.json, and *_individual_responses.json, which has no times of sending. Times in
// seconds. Its inter-token latency of a request is E2E / tokens (Definitions::Tpot::with_first).
#include <cmath>

#include "core/formats/results/bench_fields.h"

namespace mw::formats::bench {
namespace {

BenchSet llmperf_set(const std::string& model) {
  BenchSet set{.name = model, .tool = "llmperf", .model = model};
  set.definitions.tpot = Definitions::Tpot::with_first;
  set.notes.emplace_back("LLMPerf's inter-token latency is E2E / tokens and is read as time per output token");
  return set;
}

// "results_ttft_s_quantiles_p25", "results_ttft_s_mean", ... in ms.
LatencyStats llmperf_latency(const Json& summary, const std::string& name) {
  const std::string prefix = "results_" + name + "_";
  const auto at = [&](const std::string& key) { return number(summary, prefix + key) * 1e3; };
  LatencyStats stats{.mean = at("mean"), .median = at("quantiles_p50"), .deviation = at("stddev")};
  for (const int p : {25, 75, 90, 95, 99})
    if (const double value = at("quantiles_p" + std::to_string(p)); !std::isnan(value)) stats.percentiles[p] = value;
  return stats;
}

long llmperf_total(const Json& summary, const std::string& name, long requests) {
  const double sum = number(summary, "results_" + name + "_mean") * static_cast<double>(requests);
  return sum > 0 && sum < 1e15 ? std::lround(sum) : 0;
}

BenchPoint llmperf_point(const Json& summary) {
  BenchPoint point;
  point.max_concurrency = static_cast<int>(count(summary, "num_concurrent_requests", 1 << 30));
  point.input_len = rounded_length(number(summary, "mean_input_tokens"));
  point.output_len = rounded_length(number(summary, "mean_output_tokens"));
  point.num_prompts = static_cast<long>(count(summary, "results_num_requests_started"));
  point.completed = static_cast<long>(count(summary, "results_num_completed_requests"));
  point.failed = static_cast<long>(count(summary, "results_number_errors"));
  point.total_input_tokens = llmperf_total(summary, "number_input_tokens", point.completed);
  point.total_output_tokens = llmperf_total(summary, "number_output_tokens", point.completed);
  point.output_throughput = number(summary, "results_mean_output_throughput_token_per_s");
  point.request_throughput = number(summary, "results_num_completed_requests_per_min") / 60;
  if (point.request_throughput > 0) point.duration_s = static_cast<double>(point.completed) / point.request_throughput;
  point.ttft = llmperf_latency(summary, "ttft_s");
  point.tpot = llmperf_latency(summary, "inter_token_latency_s");
  point.e2el = llmperf_latency(summary, "end_to_end_latency_s");
  return point;
}

BenchPoint point_of_responses(const std::vector<Json>& responses) {
  BenchPoint point;
  std::vector<double> ttft, tpot, e2el;
  for (size_t i = 0; i < responses.size(); ++i)
    inside("response " + std::to_string(i + 1), [&] {
      const Json& r = responses[i];
      if (!r.is_object()) bad("", r, "an object with ttft_s and end_to_end_latency_s");
      ++point.num_prompts;
      if (find_member(r, "error_code") != nullptr) return void(++point.failed);
      ++point.completed;
      point.total_input_tokens += static_cast<long>(count(r, "number_input_tokens", 1 << 30));
      point.total_output_tokens += static_cast<long>(count(r, "number_output_tokens", 1 << 30));
      for (const auto& [key, values] :
           {std::pair("ttft_s", &ttft), {"inter_token_latency_s", &tpot}, {"end_to_end_latency_s", &e2el}})
        if (const double value = number(r, key); !std::isnan(value)) values->push_back(value * 1e3);
    });
  if (point.completed > 0) {
    const auto n = static_cast<double>(point.completed);
    point.input_len = rounded_length(static_cast<double>(point.total_input_tokens) / n);
    point.output_len = rounded_length(static_cast<double>(point.total_output_tokens) / n);
  }
  point.ttft = latency_stats(ttft);
  point.tpot = latency_stats(tpot);
  point.e2el = latency_stats(e2el);
  return point;
}

}  // namespace

std::vector<BenchSet> from_llmperf(const std::vector<Json>& values) {
  if (!values.empty() && find_member(values.front(), "results_ttft_s_mean") == nullptr) {
    BenchSet set = llmperf_set("");
    set.notes.emplace_back("statistics are computed from single responses, which have no times of sending");
    set.points.push_back(point_of_responses(values));
    return {set};
  }
  std::vector<BenchSet> sets;
  for (size_t i = 0; i < values.size(); ++i)
    inside(values.size() > 1 ? "result " + std::to_string(i + 1) : "", [&] {
      BenchSet facts = llmperf_set(text(values[i], "model"));
      if (const std::string version = text(values[i], "version"); !version.empty())
        facts.conditions["version"] = version;
      find_or_add_set(sets, facts).points.push_back(llmperf_point(values[i]));
    });
  return sets;
}

}  // namespace mw::formats::bench
