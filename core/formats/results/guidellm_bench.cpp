// SPDX-License-Identifier: Apache-2.0
// benchmarks.json of GuideLLM 0.1 to 0.8 has three forms: only requests (0.1), no version and `run_stats` in benchmarks
// (0.2 and 0.3), and `scheduler_metrics` (0.4 and newer). The time per output token differs from vLLM's
// (Definitions::Tpot), and the inter-token latency (0.2 and newer) is a mean per request, weighted by tokens.
#include "core/formats/results/bench_fields.h"

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::formats::bench {
namespace {

const Json kNone = Json::object();

// {"successful": {...}, "errored": ...}: the successful requests, or all.
const Json& distribution(const Json& metrics, const std::string& name) {
  const Json& split = object_at(metrics, name);
  return split.contains("successful") ? object_at(split, "successful") : split;
}

LatencyStats latency(const Json& metrics, const std::string& name, double to_ms) {
  const Json& d = distribution(metrics, name);
  // GuideLLM writes zeros for an empty distribution.
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
  if (at->empty()) at = &object_at(object_at(benchmark, "args"), "strategy");  // 0.2 and 0.3
  if (at->empty()) at = &object_at(object_at(benchmark, "scheduler"), "strategy");
  return {text(*at, "type_"), at};
}

bool is_form_of_0_2(const Json& benchmark) {
  return benchmark.contains("run_stats") || benchmark.contains("request_loader");
}

std::string model_of(const Json& benchmark) {
  const std::string model = text(object_at(object_at(benchmark, "config"), "backend"), "model");
  return model.empty() ? text(object_at(benchmark, "worker"), "backend_model") : model;
}

// Next to the metrics up to version 0.3, within them later.
const Json& totals_of(const Json& benchmark) {
  const Json& beside = object_at(benchmark, "request_totals");
  return beside.empty() ? object_at(object_at(benchmark, "metrics"), "request_totals") : beside;
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

long total(const Json& metrics, const std::string& name) {
  const double sum = number(distribution(metrics, name), "total_sum");
  return sum > 0 && sum < 1e15 ? std::lround(sum) : 0;
}

// Counts and times of one request in reports of GuideLLM 0.1 to 0.3.
void take_times_of_0_2(const Json& r, const Strategy& strategy, RequestResult& out) {
  const double targeted = number(object_at(r, "scheduler_info"), "targeted_start_time");
  out.sent_s = number(r, "start_time");
  out.intended_s = strategy.timed() && !std::isnan(targeted) ? targeted : out.sent_s;
  out.first_token_s = number(r, "first_token_time");
  out.end_s = number(r, "end_time");
}

void take_times(const Json& timings, const Strategy& strategy, RequestResult& out) {
  const double start = number(timings, "request_start"), targeted = number(timings, "targeted_start");
  out.sent_s = std::isnan(start) ? number(timings, "resolve_start") : start;
  out.intended_s = strategy.timed() && !std::isnan(targeted) ? targeted : out.sent_s;
  out.first_token_s = number(timings, "first_token_iteration");
  out.end_s = number(timings, "last_token_iteration");
  if (std::isnan(out.end_s)) out.end_s = number(timings, "request_end");
}

// Times are seconds since 1970; the load starts with the first intended request.
RequestResult request_of(const Json& r, const std::string& status, const Strategy& strategy) {
  const Json& info = object_at(r, "info");
  RequestResult out;
  out.prompt_tokens = static_cast<int>(count(r, "prompt_tokens", 1 << 30));
  out.cached_tokens = static_cast<int>(count(r, "cached_tokens", 1 << 30));
  out.output_tokens = static_cast<int>(count(r, "output_tokens", 1 << 30));
  if (info.empty())
    take_times_of_0_2(r, strategy, out);
  else
    take_times(object_at(info, "timings"), strategy, out);
  if (status != "successful") {
    out.error = text(info.empty() ? r : info, "error");
    if (out.error.empty()) out.error = status;
  }
  return out;
}

void since_begin(std::vector<RequestResult>& requests) {
  double begin = std::numeric_limits<double>::infinity();
  for (const RequestResult& r : requests) begin = std::min(begin, r.intended_s);
  for (RequestResult& r : requests)
    for (double* t : {&r.intended_s, &r.sent_s, &r.first_token_s, &r.end_s}) *t -= begin;
}

std::vector<RequestResult> requests_of(const Json& benchmark, const Strategy& strategy) {
  std::vector<RequestResult> all;
  const Json& split = object_at(benchmark, "requests");
  for (const char* status : {"successful", "errored", "incomplete"}) {
    each_object(list(split, status), std::string("requests.") + status, "an object", [&](const Json& request) {
      RequestResult r = request_of(request, status, strategy);
      if (!std::isnan(r.sent_s)) all.push_back(std::move(r));  // requests that were never sent are ignored
    });
  }
  since_begin(all);
  return all;
}

BenchPoint benchmark_point(const Json& benchmark) {
  const Strategy strategy = strategy_of(benchmark);
  const Json& metrics = object_at(benchmark, "metrics");
  if (metrics.empty()) bad("metrics", benchmark, "the metrics of a benchmark");
  BenchPoint point;
  take_load(point, strategy);
  return inside("metrics", [&] {
    const Json& totals = totals_of(benchmark);
    if (totals.empty()) bad("request_totals", metrics, "the number of successful requests");
    point.completed = static_cast<long>(count(totals, "successful"));
    point.failed = static_cast<long>(count(totals, "errored"));
    point.num_prompts = static_cast<long>(count(totals, "total"));
    if (const auto cut = count(totals, "incomplete"); cut > 0)
      point.rest["incomplete"] = cut;  // stopped by the time limit
    point.total_input_tokens = total(metrics, "prompt_token_count");
    point.total_output_tokens = total(metrics, "output_token_count");
    point.input_len = rounded_length(number(distribution(metrics, "prompt_token_count"), "mean"));
    point.output_len = rounded_length(number(distribution(metrics, "output_token_count"), "mean"));
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

// A report of 0.1 has no metrics; they are computed from its requests, by the definitions of 0.1 and vLLM.
RequestResult request_of_0_1(const Json& r) {
  RequestResult out;
  out.prompt_tokens = static_cast<int>(count(r, "prompt_token_count", 1 << 30));
  out.output_tokens = static_cast<int>(count(r, "output_token_count", 1 << 30));
  out.intended_s = out.sent_s = number(r, "start_time");
  out.first_token_s = out.sent_s + number(r, "first_token_time");
  out.end_s = number(r, "end_time");
  const Json* gaps = list(object_at(r, "decode_times"), "data");
  for (size_t i = 0; gaps && i < gaps->size(); ++i)
    out.gaps_ms.push_back(static_cast<float>(number_of((*gaps)[i], "decode_times.data") * 1e3));
  return out;
}

void take_latencies(BenchPoint& point) {
  std::vector<double> ttft, tpot, itl, e2el;
  for (const RequestResult& r : point.requests) {
    const double first = (r.first_token_s - r.sent_s) * 1e3, whole = (r.end_s - r.sent_s) * 1e3;
    if (!std::isnan(first)) ttft.push_back(first);
    if (!std::isnan(whole)) e2el.push_back(whole);
    if (!std::isnan(whole - first) && r.output_tokens > 1) tpot.push_back((whole - first) / (r.output_tokens - 1));
    itl.insert(itl.end(), r.gaps_ms.begin(), r.gaps_ms.end());
  }
  for (const auto& [stats, values] :
       {std::pair(&point.ttft, &ttft), {&point.tpot, &tpot}, {&point.itl, &itl}, {&point.e2el, &e2el}})
    if (!values->empty()) *stats = latency_stats(*values);
}

BenchPoint point_of_0_1(const Json& benchmark, const std::string& arrival) {
  BenchPoint point;
  each_object(list(benchmark, "results"), "results", "an object",
              [&](const Json& result) { point.requests.push_back(request_of_0_1(result)); });
  const Json* errors = list(benchmark, "errors");
  point.completed = static_cast<long>(point.requests.size());
  point.failed = errors ? static_cast<long>(errors->size()) : 0;
  point.num_prompts = point.completed + point.failed;
  const std::string mode = text(benchmark, "mode");
  const double rate = number(benchmark, "rate");
  if (mode == "asynchronous" && rate > 0) point.request_rate = rate;
  if (mode == "throughput") point.request_rate = std::numeric_limits<double>::infinity();
  if (mode == "synchronous") point.max_concurrency = 1;
  point.rest["strategy"] = arrival;
  if (point.requests.empty()) return point;
  since_begin(point.requests);
  for (const RequestResult& r : point.requests) {
    point.total_input_tokens += r.prompt_tokens;
    point.total_output_tokens += r.output_tokens;
  }
  const auto n = static_cast<double>(point.completed);
  point.input_len = rounded_length(static_cast<double>(point.total_input_tokens) / n);
  point.output_len = rounded_length(static_cast<double>(point.total_output_tokens) / n);
  point.duration_s = point.requests.back().end_s - point.requests.front().sent_s;
  if (point.duration_s > 0) {
    point.request_throughput = n / point.duration_s;
    point.output_throughput = static_cast<double>(point.total_output_tokens) / point.duration_s;
  }
  take_latencies(point);
  return point;
}

bool is_report_of_0_1(const Json& report) {
  return report.contains("benchmarks") && report.contains("args") && !report.contains("metadata");
}

BenchSet set_of_0_1(const Json& report) {
  const Json& args = object_at(report, "args");
  const std::string arrival = text(args, "mode");
  BenchSet set{.name = text(args, "model"),
               .tool = "guidellm 0.1",
               .model = text(args, "model"),
               .conditions = {{"arrival", arrival}},
               .notes = {"percentiles and means are computed from the requests of the report"}};
  each_object(list(report, "benchmarks"), "benchmarks", "an object with results",
              [&](const Json& benchmark) { set.points.push_back(point_of_0_1(benchmark, arrival)); });
  return set;
}

// Name and definitions of the set of a benchmark.
BenchSet facts_of(const Json& benchmark, const std::string& version) {
  const bool old = is_form_of_0_2(benchmark);
  BenchSet facts{.tool = version.empty() ? old ? "guidellm 0.2 or 0.3" : "guidellm" : "guidellm " + version,
                 .model = model_of(benchmark)};
  facts.definitions.tpot = old ? Definitions::Tpot::after_first_per_token : Definitions::Tpot::with_first;
  facts.notes.push_back(std::string(old ? "time per output token is (last token - first token) / tokens"
                                        : "time per output token includes the first token") +
                        "; inter-token latency is a mean per request, weighted by its tokens");
  facts.name = facts.model;
  return facts;
}

// Whether this is a list of reports of 0.1 with one load each.
bool lists_reports_of_0_1(const Json& benchmarks) {
  return !benchmarks.empty() && benchmarks[0].is_object() && is_report_of_0_1(benchmarks[0]);
}

}  // namespace

std::vector<BenchSet> from_guidellm(const Json& report) {
  if (!report.is_object()) bad("", report, "an object with benchmarks");
  std::vector<BenchSet> sets;
  const std::string version = text(object_at(report, "metadata"), "guidellm_version");
  const Json* benchmarks = list(report, "benchmarks");
  std::vector<std::set<std::string>> arrivals;
  const bool oldest = benchmarks && lists_reports_of_0_1(*benchmarks);
  each_object(benchmarks, "benchmarks", "an object with config and metrics", [&](const Json& benchmark) {
    if (oldest) return sets.push_back(set_of_0_1(benchmark));
    BenchPoint point = benchmark_point(benchmark);
    point.duration_s = number(benchmark, "duration");
    point.requests = requests_of(benchmark, strategy_of(benchmark));
    BenchSet& set = find_or_add_set(sets, facts_of(benchmark, version));
    arrivals.resize(sets.size());
    arrivals[static_cast<size_t>(&set - sets.data())].insert(strategy_of(benchmark).type);
    set.points.push_back(std::move(point));
  });
  for (size_t i = 0; i < arrivals.size(); ++i) sets[i].conditions["arrival"] = joined(arrivals[i]);
  return sets;
}

}  // namespace mw::formats::bench
