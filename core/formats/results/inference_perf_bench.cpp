// SPDX-License-Identifier: Apache-2.0
// stage_N_lifecycle_metrics.json and summary_lifecycle_metrics.json of inference-perf (kubernetes-sigs); times in
// seconds. The normalized time per output token is E2E / tokens and is the only one known without streaming.
#include <cmath>

#include "core/base/text.h"
#include "core/formats/results/bench_fields.h"

namespace mw::formats::bench {
namespace {

// {"mean", "median", "min", "max", "p0.1", "p90", ...}; `scale` converts to ms.
LatencyStats inference_perf_latency(const Json& latencies, const std::string& name) {
  const Json& values = object_at(latencies, name);
  if (values.empty()) return {};
  return inside(name, [&] {
    LatencyStats stats{.mean = number(values, "mean") * 1e3, .median = number(values, "median") * 1e3};
    for (const auto& [key, value] : values.items())
      if (const auto p = key.starts_with('p') ? parse_number<double>(key.substr(1)) : std::nullopt;
          p && *p >= 0 && *p <= 100 && !value.is_null())
        stats.percentiles[*p] = number_of(value, key) * 1e3;
    return stats;
  });
}

long total_of(const Json& successes, const std::string& name, long requests) {
  const double sum = number(object_at(successes, name), "mean") * static_cast<double>(requests);
  return sum > 0 && sum < 1e15 ? std::lround(sum) : 0;
}

void take_successes(const Json& successes, BenchSet& set, BenchPoint& point) {
  point.completed = static_cast<long>(count(successes, "count"));
  point.input_len = rounded_length(number(object_at(successes, "prompt_len"), "mean"));
  point.output_len = rounded_length(number(object_at(successes, "output_len"), "mean"));
  point.total_input_tokens = total_of(successes, "prompt_len", point.completed);
  point.total_output_tokens = total_of(successes, "output_len", point.completed);
  const Json& throughput = object_at(successes, "throughput");
  point.request_throughput = number(throughput, "requests_per_sec");
  point.output_throughput = number(throughput, "output_tokens_per_sec");
  point.total_token_throughput = number(throughput, "total_tokens_per_sec");
  // The tool divides the successful requests by the time from the first sent to the last completed one.
  if (point.request_throughput > 0) point.duration_s = static_cast<double>(point.completed) / point.request_throughput;
  const Json& latencies = object_at(successes, "latency");
  point.e2el = inference_perf_latency(latencies, "request_latency");
  point.ttft = inference_perf_latency(latencies, "time_to_first_token");
  point.itl = inference_perf_latency(latencies, "inter_token_latency");
  point.tpot = inference_perf_latency(latencies, "time_per_output_token");
  if (point.tpot.known()) return;
  point.tpot = inference_perf_latency(latencies, "normalized_time_per_output_token");
  if (!point.tpot.known()) return;
  set.definitions.tpot = Definitions::Tpot::with_first;
  set.notes.emplace_back("the requests were not streamed: time per output token includes the first token");
}

}  // namespace

std::vector<BenchSet> from_inference_perf(const Json& report) {
  if (!report.is_object()) bad("", report, "an object with load_summary and successes");
  BenchSet set{.tool = "inference-perf"};
  BenchPoint point;
  inside("successes", [&] { take_successes(object_at(report, "successes"), set, point); });
  inside("load_summary", [&] {
    const Json& load = object_at(report, "load_summary");
    if (const double rate = number(load, "requested_rate"); rate > 0) point.request_rate = rate;
    point.max_concurrency = static_cast<int>(count(load, "concurrency", 1 << 30));
    for (const char* key : {"achieved_rate", "send_duration"})
      if (const double value = number(load, key); !std::isnan(value)) point.rest[key] = value;
  });
  if (std::isnan(point.request_rate) && point.max_concurrency == 0)
    point.note = "the file names no rate and no concurrency; a summary joins all stages of the benchmark";
  point.failed = static_cast<long>(inside("failures", [&] { return count(object_at(report, "failures"), "count"); }));
  point.num_prompts = point.completed + point.failed;
  set.points.push_back(std::move(point));
  return {set};
}

}  // namespace mw::formats::bench
