// SPDX-License-Identifier: Apache-2.0
// mlperf_log_summary.txt of MLPerf LoadGen: lines "name : value", times in nanoseconds (loadgen/results.cc). The time
// per output token is (E2E - TTFT) / (n - 1). A throughput of samples is one of requests.
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "core/formats/results/bench_fields.h"

namespace mw::formats::bench {
namespace {

using SummaryLines = std::map<std::string, std::string, std::less<>>;  // lower case name -> value

// The first value of a name holds: the token throughput occurs twice.
SummaryLines summary_lines(std::string_view text) {
  SummaryLines lines;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    lines.emplace(lower_case(trimmed(line.substr(0, colon))), std::string(trimmed(line.substr(colon + 1))));
  }
  return lines;
}

std::string line_text(const SummaryLines& lines, std::string_view name) {
  const auto found = lines.find(name);
  return found == lines.end() ? std::string() : found->second;
}

double line_number(const SummaryLines& lines, std::string_view name) {
  const std::string value = line_text(lines, name);
  if (value.empty()) return kUnknown;
  const auto parsed = parse_number<double>(value);
  if (!parsed || !std::isfinite(*parsed) || *parsed < 0) bad(std::string(name), value, "a number of at least 0");
  return *parsed;
}

double first_known(const SummaryLines& lines, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const double value = line_number(lines, name); !std::isnan(value)) return value;
  return kUnknown;
}

// `mean`: "mean latency (ns)"; percentiles: "99.00 percentile latency (ns)".
LatencyStats mlperf_latency(const SummaryLines& lines, std::string_view mean, std::string_view percentile) {
  LatencyStats stats{.mean = line_number(lines, mean) / 1e6};
  for (const auto& [name, value] : lines) {
    const size_t space = name.find(' ');
    if (space == std::string::npos || std::string_view(name).substr(space + 1) != percentile) continue;
    const auto p = parse_number<double>(std::string_view(name).substr(0, space));
    if (!p || !(*p >= 0 && *p <= 100)) continue;
    const double ms = line_number(lines, name) / 1e6;
    (*p == 50 ? stats.median : stats.percentiles[*p]) = ms;
  }
  return stats;
}

void take_scenario(const SummaryLines& lines, const std::string& scenario, BenchPoint& point) {
  if (scenario == "Offline") {
    point.request_rate = std::numeric_limits<double>::infinity();
    point.duration_s = line_number(lines, "max latency (ns)") / 1e9;  // all samples are sent at the start
    if (const double samples = line_number(lines, "samples_per_query"); samples >= 1 && samples < 1e15)
      point.completed = point.num_prompts = std::lround(samples);
  } else if (scenario == "Server") {
    const double rate = first_known(lines, {"scheduled samples per second", "target_qps"});
    if (rate > 0) point.request_rate = rate;
  } else {
    point.max_concurrency = 1;
  }
}

// The constraints that the run did not satisfy: "min duration, performance constraints".
std::string violated(const SummaryLines& lines) {
  std::vector<std::string> names;
  for (const auto& [name, value] : lines)
    if (name.ends_with(" satisfied") && value == "NO") names.push_back(name.substr(0, name.size() - 10));
  return joined(names);
}

}  // namespace

bool is_mlperf_summary(std::string_view text) {
  return text.substr(0, 4096).find("MLPerf Results Summary") != std::string_view::npos;
}

std::vector<BenchSet> from_mlperf(std::string_view text) {
  const SummaryLines lines = summary_lines(text.substr(text.find("MLPerf Results Summary")));
  const std::string scenario = line_text(lines, "scenario"), mode = line_text(lines, "mode");
  if (scenario.empty()) bad("Scenario", Json(nullptr), "Offline, Server, Single Stream or Multi Stream");
  if (!mode.starts_with("Performance")) bad("Mode", mode, "PerformanceOnly; other modes measure no performance");
  BenchPoint point;
  take_scenario(lines, scenario, point);
  point.request_throughput =
      first_known(lines, {"completed samples per second", "samples per second", "qps w/ loadgen overhead"});
  point.output_throughput = first_known(lines, {"completed tokens per second", "tokens per second"});
  point.e2el = mlperf_latency(lines, "mean latency (ns)", "percentile latency (ns)");
  point.ttft = mlperf_latency(lines, "mean first token latency (ns)", "percentile first token latency (ns)");
  point.tpot = mlperf_latency(lines, "mean time per output token (ns)", "percentile time to output token (ns)");
  const std::string result = line_text(lines, "result is");
  if (result == "INVALID") point.note = "LoadGen calls the result INVALID: " + violated(lines) + " not satisfied";
  BenchSet set{.tool = "MLPerf LoadGen"};
  set.conditions = {{"scenario", scenario}};
  if (const std::string sut = line_text(lines, "sut name"); !sut.empty()) set.conditions["sut"] = sut;
  if (!result.empty()) point.rest["result"] = result;
  set.points.push_back(std::move(point));
  return {set};
}

}  // namespace mw::formats::bench
