// SPDX-License-Identifier: Apache-2.0
// GuideLLM's benchmarks.json, versions 1 and 2 (interop.md 6.5). Its time per output token has the first token in it,
// and its inter-token latency is a mean per request, weighted by tokens: neither is what vLLM calls so.
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/formats/bench_importers.h"
#include "core/formats/bench_result_fields.h"

namespace mw::formats::bench {
namespace {

const Json kNone = Json::object();

// The member of an object, or an empty one where there is none.
const Json& object_at(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return kNone;
  if (!found->is_object()) bad(key, *found, "an object");
  return *found;
}

// {"successful": {...}, "errored": ...}: what completed, else what there is.
const Json& distribution(const Json& metrics, const std::string& name) {
  const Json& split = object_at(metrics, name);
  return split.contains("successful") ? object_at(split, "successful") : split;
}

LatencyStats latency(const Json& metrics, const std::string& name, double to_ms) {
  const Json& d = distribution(metrics, name);
  // Of nothing it writes zeros.
  if (d.empty() || count(d, "count") == 0) return {};
  const auto at = [&](const Json& from, const std::string& key) { return number(from, key) * to_ms; };
  return inside(name, [&] {
    LatencyStats stats{.mean = at(d, "mean"), .median = at(d, "median"), .deviation = at(d, "std_dev")};
    static const std::pair<double, const char*> kNames[]{{0.1, "p001"}, {1, "p01"},    {5, "p05"},  {10, "p10"},
                                                         {25, "p25"},   {75, "p75"},   {90, "p90"}, {95, "p95"},
                                                         {99, "p99"},   {99.9, "p999"}};
    const Json& percentiles = object_at(d, "percentiles");
    for (const auto& [p, key] : kNames)
      if (percentiles.contains(key)) stats.percentiles[p] = at(percentiles, key);
    return stats;
  });
}

struct Strategy {
  std::string type;
  const Json* json = &kNone;
  bool timed() const { return type == "constant" || type == "poisson" || type == "trace" || type == "replay"; }
};

Strategy strategy_of(const Json& benchmark) {
  const Json* at = &object_at(object_at(benchmark, "config"), "strategy");
  if (at->empty()) at = &object_at(object_at(benchmark, "args"), "strategy");       // version 1
  if (at->empty()) at = &object_at(object_at(benchmark, "scheduler"), "strategy");  // 0.4
  return {text(*at, "type_"), at};
}

void take_load(BenchPoint& point, const Strategy& strategy) {
  const double rate = number(*strategy.json, "rate");
  if (strategy.timed() && rate > 0) point.request_rate = rate;
  if (strategy.type == "throughput") point.request_rate = std::numeric_limits<double>::infinity();
  if (strategy.type == "synchronous") point.max_concurrency = 1;
  if (strategy.type == "concurrent")
    point.max_concurrency = static_cast<int>(count(*strategy.json, "streams", 1 << 30));
  if (strategy.type == "throughput")
    point.max_concurrency = static_cast<int>(count(*strategy.json, "max_concurrency", 1 << 30));
  point.rest["strategy"] = strategy.type;
}

int rounded(double value) {
  return value > 0 && value < 1 << 30 ? static_cast<int>(std::lround(value)) : 0;
}

long total(const Json& metrics, const std::string& name) {
  const double sum = number(distribution(metrics, name), "total_sum");
  return sum > 0 && sum < 1e15 ? std::lround(sum) : 0;
}

// Times are seconds since 1970; the load begins with the first that was to be sent.
RequestResult request_of(const Json& r, const std::string& status, const Strategy& strategy) {
  const Json& info = object_at(r, "info");
  const Json& timings = object_at(info, "timings");
  RequestResult out;
  out.prompt_tokens = static_cast<int>(count(r, "prompt_tokens", 1 << 30));
  out.cached_tokens = static_cast<int>(count(r, "cached_tokens", 1 << 30));
  out.output_tokens = static_cast<int>(count(r, "output_tokens", 1 << 30));
  const double start = number(timings, "request_start"), targeted = number(timings, "targeted_start");
  out.sent_s = std::isnan(start) ? number(timings, "resolve_start") : start;
  out.intended_s = strategy.timed() && !std::isnan(targeted) ? targeted : out.sent_s;
  out.first_token_s = number(timings, "first_token_iteration");
  out.end_s = number(timings, "last_token_iteration");
  if (std::isnan(out.end_s)) out.end_s = number(timings, "request_end");
  if (status != "successful") {
    out.error = text(info, "error");
    if (out.error.empty()) out.error = status;
  }
  return out;
}

std::vector<RequestResult> requests_of(const Json& benchmark, const Strategy& strategy) {
  std::vector<RequestResult> all;
  const Json& split = object_at(benchmark, "requests");
  for (const char* status : {"successful", "errored", "incomplete"}) {
    const Json* list = bench::list(split, status);
    for (size_t i = 0; list && i < list->size(); ++i)
      inside(std::string("requests.") + status + "[" + std::to_string(i) + "]", [&] {
        if (!(*list)[i].is_object()) bad("", (*list)[i], "an object");
        RequestResult r = request_of((*list)[i], status, strategy);
        if (!std::isnan(r.sent_s)) all.push_back(std::move(r));  // one that was never sent says nothing
        return 0;
      });
  }
  double begin = std::numeric_limits<double>::infinity();
  for (const RequestResult& r : all) begin = std::min(begin, r.intended_s);
  for (RequestResult& r : all)
    for (double* t : {&r.intended_s, &r.sent_s, &r.first_token_s, &r.end_s}) *t -= begin;
  return all;
}

BenchPoint benchmark_point(const Json& benchmark) {
  const Strategy strategy = strategy_of(benchmark);
  const Json& metrics = object_at(benchmark, "metrics");
  if (metrics.empty()) bad("metrics", benchmark, "the metrics of a benchmark");
  BenchPoint point;
  take_load(point, strategy);
  return inside("metrics", [&] {
    const Json& totals = object_at(metrics, "request_totals");
    point.completed = static_cast<long>(count(totals, "successful"));
    point.failed = static_cast<long>(count(totals, "errored"));
    point.num_prompts = static_cast<long>(count(totals, "total"));
    if (const auto cut = count(totals, "incomplete"); cut > 0)
      point.rest["incomplete"] = cut;  // at the end of its time
    point.total_input_tokens = total(metrics, "prompt_token_count");
    point.total_output_tokens = total(metrics, "output_token_count");
    point.input_len = rounded(number(distribution(metrics, "prompt_token_count"), "mean"));
    point.output_len = rounded(number(distribution(metrics, "output_token_count"), "mean"));
    point.request_throughput = number(distribution(metrics, "requests_per_second"), "mean");
    point.output_throughput = number(distribution(metrics, "output_tokens_per_second"), "mean");
    point.total_token_throughput = number(distribution(metrics, "tokens_per_second"), "mean");
    point.max_concurrent_requests = number(distribution(metrics, "request_concurrency"), "max");
    point.ttft = latency(metrics, "time_to_first_token_ms", 1);
    point.tpot = latency(metrics, "time_per_output_token_ms", 1);
    point.itl = latency(metrics, "inter_token_latency_ms", 1);
    point.e2el = latency(metrics, "request_latency", 1e3);
    point.intended_e2el = latency(metrics, "request_scheduled_latency", 1e3);
    return point;
  });
}

}  // namespace

std::vector<BenchSet> from_guidellm(const Json& report) {
  if (!report.is_object()) bad("", report, "an object with metadata and benchmarks");
  std::vector<BenchSet> sets;
  const std::string version = text(object_at(report, "metadata"), "guidellm_version");
  const Json* benchmarks = list(report, "benchmarks");
  std::vector<std::set<std::string>> arrivals;
  for (size_t i = 0; benchmarks && i < benchmarks->size(); ++i)
    inside("benchmarks[" + std::to_string(i) + "]", [&] {
      const Json& benchmark = (*benchmarks)[i];
      if (!benchmark.is_object()) bad("", benchmark, "an object with config and metrics");
      BenchPoint point = benchmark_point(benchmark);
      point.duration_s = number(benchmark, "duration");
      point.requests = requests_of(benchmark, strategy_of(benchmark));
      BenchSet facts{.tool = version.empty() ? "guidellm" : "guidellm " + version,
                     .model = text(object_at(object_at(benchmark, "config"), "backend"), "model"),
                     .definitions = {.tpot = Definitions::Tpot::with_first},
                     .notes = {"time per output token has the first token in it; inter-token latency is a mean per "
                               "request, weighted by its tokens"}};
      facts.name = facts.model;
      BenchSet& set = set_like(sets, facts);
      arrivals.resize(sets.size());
      arrivals[static_cast<size_t>(&set - sets.data())].insert(strategy_of(benchmark).type);
      set.points.push_back(std::move(point));
      return 0;
    });
  for (size_t i = 0; i < sets.size(); ++i) {
    std::string names;
    for (const std::string& name : arrivals[i]) names += (names.empty() ? "" : ", ") + name;
    sets[i].conditions["arrival"] = names;
  }
  return sets;
}

}  // namespace mw::formats::bench
