// SPDX-License-Identifier: Apache-2.0
// What charts draw of load points, of one sweep or of several beside each other: axes, lines with bands, verdicts in
// words. Latencies are in seconds here. Plain values; any thread.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/views/series.h"
#include "core/views/sweep_view.h"

namespace mw::views {

// A place for every load on one axis: log2 of its rate; beyond the last rate bursts, closed loops by their users, and
// loads whose rate nobody says.
class LoadAxis {
 public:
  struct Stop {
    double place = 0;
    std::string label;  // "4", "burst", "32 users", "not said"
  };
  void add(const formats::BenchPoint& point);
  void add_rate(double rate);                            // of a point that is still to come
  double place(const formats::BenchPoint& point) const;  // of one that was added
  std::vector<Stop> stops() const;                       // by place
  std::optional<double> rate_at(double place) const;     // finite rates only

 private:
  using Key = std::pair<int, double>;  // kind of load, its number
  static Key key_of(const formats::BenchPoint& point);
  double place(const Key& key) const;
  std::map<Key, bool> loads_;
};
std::string load_text(const formats::BenchPoint& point);  // "4 requests/s", "burst", "32 users", "rate not said"

enum class SweepMetric {
  ttft,
  tpot,
  itl,
  e2el,
  output_throughput,
  total_throughput,
  request_throughput,
  goodput,
  cost
};
inline constexpr SweepMetric kSweepMetrics[] = {
    SweepMetric::ttft,
    SweepMetric::tpot,
    SweepMetric::itl,
    SweepMetric::e2el,
    SweepMetric::output_throughput,
    SweepMetric::total_throughput,
    SweepMetric::request_throughput,
    SweepMetric::goodput,
    SweepMetric::cost,
};
bool is_latency(SweepMetric metric);
std::string label_of(SweepMetric metric);       // "TTFT", "Output throughput"
std::string unit_of(SweepMetric metric);        // "median to p99", "tokens/s"
std::string_view field_of(SweepMetric metric);  // what vLLM's names of it contain: "ttft", "output_throughput"

struct MetricValue {
  double value = formats::kUnknown, high = formats::kUnknown;  // median, else mean; p99
};
MetricValue metric_value(const formats::BenchPoint& point, SweepMetric metric, double usd_per_hour);
// USD per million tokens of a server that costs so much an hour.
double usd_per_million(double usd_per_hour, double tokens_per_second);

// Points at one place of an axis: repeats are one sample.
struct ChartSample {
  double place = 0;
  double value = formats::kUnknown;                          // mean of the repeats
  double low = formats::kUnknown, high = formats::kUnknown;  // smallest value; largest p99, or value
  std::vector<size_t> points{};                              // indices in the set
};
using PlaceOf = std::function<double(const formats::BenchPoint&)>;
std::vector<ChartSample> samples_of(const formats::BenchSet& set, const std::vector<size_t>& points,
                                    const PlaceOf& place, SweepMetric metric);

// "meets the SLO to 6.5 requests/s, but not at 1 and 2 requests/s".
std::string slo_text(const serve::Capacity& capacity);

// The knee, the rate that meets the SLO and how every load ended, in a line: "stable to 8, overloaded from 32 ...".
std::string verdict_text(const formats::BenchSet& set, const SweepLine& line, const serve::Slo& slo);

// Worst finding on a point, of metrics whose name contains `field`; null where there is none above `fine`. That
// requests are few is no mark on a number: words, bands and the audit's column say it.
const serve::Finding* worst_finding(const std::vector<serve::Finding>& findings, size_t point, std::string_view field);

// What a request went through, seconds since the load began; those without a number are as the one before.
struct RequestPhases {
  double intended = 0, sent = 0, scheduled = 0, first_token = 0, end = 0;
  bool failed = false;
  bool queue_known = false;  // the server said when it began with it
};
RequestPhases phases_of(const formats::RequestResult& request);

}  // namespace mw::views
