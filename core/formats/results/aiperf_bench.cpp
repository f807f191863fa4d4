// SPDX-License-Identifier: Apache-2.0
// profile_export_aiperf.json of NVIDIA AIPerf, and profile_export_genai_perf.json of its predecessor GenAI-Perf. Each
// metric is {"unit", "avg", "p50", ...}. The inter-token latency of both is (request latency - TTFT) / (tokens - 1) per
// request, which vLLM calls time per output token; vLLM's inter-token latency is AIPerf's inter-chunk latency.
// input_config has three forms: phases (AIPerf 0.10), loadgen and endpoint (before), options of the command
// (GenAI-Perf).
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/formats/results/bench_fields.h"

namespace mw::formats::bench {
namespace {

// Milliseconds in one unit of a time.
double ms_in_unit(const Json& metric) {
  static const std::array<std::pair<std::string_view, double>, 10> kUnits{{{"ms", 1},
                                                                           {"milliseconds", 1},
                                                                           {"s", 1e3},
                                                                           {"sec", 1e3},
                                                                           {"seconds", 1e3},
                                                                           {"us", 1e-3},
                                                                           {"\u00b5s", 1e-3},
                                                                           {"microseconds", 1e-3},
                                                                           {"ns", 1e-6},
                                                                           {"nanoseconds", 1e-6}}};
  const std::string unit = text(metric, "unit");
  for (const auto& [name, ms] : kUnits)
    if (unit == name) return ms;
  bad("unit", unit, "a unit of time: ns, us, ms or sec");
}

LatencyStats aiperf_latency(const Json& report, const std::string& name) {
  const Json& metric = object_at(report, name);
  if (metric.empty()) return {};
  return inside(name, [&] {
    const double to_ms = ms_in_unit(metric);
    const auto at = [&](const char* key) { return number(metric, key) * to_ms; };
    LatencyStats stats{.mean = at("avg"), .median = at("p50"), .deviation = at("std")};
    for (const auto& [p, key] :
         {std::pair(1, "p1"), {5, "p5"}, {10, "p10"}, {25, "p25"}, {75, "p75"}, {90, "p90"}, {95, "p95"}, {99, "p99"}})
      if (const double value = at(key); !std::isnan(value)) stats.percentiles[p] = value;
    return stats;
  });
}

double aiperf_value(const Json& report, const std::string& name) {  // the mean, or the only value
  return inside(name, [&] { return number(object_at(report, name), "avg"); });
}

long aiperf_count(const Json& report, const std::string& name) {
  return inside(name, [&] { return static_cast<long>(count(object_at(report, name), "avg")); });
}

// The members that describe the load: the measured phase, `loadgen`, or the options of the command.
const Json& aiperf_load(const Json& input) {
  if (const Json* phases = list(input, "phases"))
    for (const Json& phase : *phases)
      if (phase.is_object() && text(phase, "name") == "profiling") return phase;
  const Json& loadgen = object_at(input, "loadgen");
  return loadgen.empty() ? input : loadgen;
}

std::string first_text(const Json* names) {
  if (!names || names->empty()) return {};
  const Json& first = names->front();
  return first.is_object() ? text(first, "name") : text_of(first, "[0]");
}

std::string aiperf_model(const Json& input) {
  if (const std::string name = first_text(list(object_at(input, "models"), "items")); !name.empty()) return name;
  if (const std::string name = first_text(list(object_at(input, "endpoint"), "model_names")); !name.empty())
    return name;
  return first_text(list(input, "model"));
}

BenchPoint aiperf_point(const Json& report) {
  const Json& input = object_at(report, "input_config");
  const Json& load = aiperf_load(input);
  BenchPoint point;
  inside("input_config", [&] {
    if (const double rate = number(load, "rate"); rate > 0) point.request_rate = rate;
    if (const double rate = number(load, "request_rate"); rate > 0) point.request_rate = rate;
    point.max_concurrency = static_cast<int>(count(load, "concurrency", 1 << 30));
  });
  point.completed = aiperf_count(report, "request_count");
  point.failed = aiperf_count(report, "error_request_count");
  point.num_prompts = point.completed + point.failed;
  if (const Json& duration = object_at(report, "benchmark_duration"); !duration.empty())
    point.duration_s =
        inside("benchmark_duration", [&] { return number(duration, "avg") * ms_in_unit(duration) / 1e3; });
  point.input_len = rounded_length(aiperf_value(report, "input_sequence_length"));
  point.output_len = rounded_length(aiperf_value(report, "output_sequence_length"));
  point.total_input_tokens = aiperf_count(report, "total_isl");
  point.total_output_tokens = aiperf_count(report, "total_osl");
  if (point.total_output_tokens == 0) point.total_output_tokens = aiperf_count(report, "total_output_tokens");
  point.request_throughput = aiperf_value(report, "request_throughput");
  point.output_throughput = aiperf_value(report, "output_token_throughput");
  point.total_token_throughput = aiperf_value(report, "total_token_throughput");
  point.request_goodput = aiperf_value(report, "goodput");
  point.ttft = aiperf_latency(report, "time_to_first_token");
  point.tpot = aiperf_latency(report, "inter_token_latency");
  point.itl = aiperf_latency(report, "inter_chunk_latency");
  point.e2el = aiperf_latency(report, "request_latency");
  if (const Json* cancelled = find_member(report, "was_cancelled"); cancelled && *cancelled == true)
    point.note = "the benchmark was cancelled";
  return point;
}

}  // namespace

std::vector<BenchSet> from_aiperf(const std::vector<Json>& reports) {
  std::vector<BenchSet> sets;
  for (size_t i = 0; i < reports.size(); ++i)
    inside(reports.size() > 1 ? "result " + std::to_string(i + 1) : "", [&] {
      if (!reports[i].is_object()) bad("", reports[i], "an object with metrics and input_config");
      BenchPoint point = aiperf_point(reports[i]);
      const std::string version = text(reports[i], "aiperf_version");
      const Json& input = object_at(reports[i], "input_config");
      BenchSet facts{.tool = version.empty() ? "aiperf or genai-perf" : "aiperf " + version};
      facts.name = facts.model = inside("input_config", [&] { return aiperf_model(input); });
      if (const std::string arrival = text(aiperf_load(input), "type"); !arrival.empty())
        facts.conditions["arrival"] = arrival;
      if (const Json* tokenizer = find_member(input, "tokenizer"))  // its name in GenAI-Perf, an object in AIPerf
        if (const std::string name = tokenizer->is_object() ? text(*tokenizer, "name") : text(input, "tokenizer");
            !name.empty())
          facts.conditions["tokenizer"] = name;
      facts.notes.emplace_back(
          "AIPerf's inter-token latency is a mean per request and is read as time per output token");
      find_or_add_set(sets, facts).points.push_back(std::move(point));
    });
  return sets;
}

}  // namespace mw::formats::bench
