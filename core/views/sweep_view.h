// SPDX-License-Identifier: Apache-2.0
// Content of the Serve page, built from the events of a sweep. Thread-safe.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/audit/audit.h"
#include "core/formats/results/bench_result.h"
#include "core/serve/load/sweep.h"
#include "core/views/run_view.h"
#include "core/views/series.h"

namespace mw::views {

struct SweepLine {  // one input length
  int input_len = 0;
  std::vector<size_t> points;  // indices into set.points, by rate
  serve::Capacity capacity;
};
struct SweepView {
  formats::BenchSet set;
  std::vector<SweepLine> lines{};
  std::vector<audit::AuditFinding> findings{};
  options::Slo slo{};
  std::size_t ignored = 0;  // invalid points
};
SweepView sweep_view(const RunView& run);
// Builds the view of a running sweep incrementally. Drops the inter-token times, which no chart shows.
class GrowingSweep {
 public:
  explicit GrowingSweep(const Json& info);  // of event::Started
  void add(const event::ResultPoint& point);
  SweepView view() const;
  SweepView take();  // moves the data out; call last

 private:
  formats::BenchSet set_;
  options::Slo slo_;
  std::size_t ignored_ = 0;
};
SweepView sweep_view(formats::BenchSet set, const options::Slo& slo);  // of a file or a shipped set

// Chart data of load points of one or several sweeps: axes, lines with bands, verdict texts. Latencies are in seconds.
// Thread-safe.

// Maps loads to positions on one axis: log2 of finite rates, followed by bursts, closed loops by number of users, and
// loads of unknown rate.
class LoadAxis {
 public:
  struct Stop {
    double place = 0;
    std::string label;  // "4", "burst", "32 users", "not recorded"
  };
  void add(const formats::BenchPoint& point) { loads_.insert(key_of(point)); }
  void add_rate(double rate);                            // of a point that is not measured yet
  double place(const formats::BenchPoint& point) const;  // the point must have been added
  std::vector<Stop> stops() const;                       // ascending by position
  std::optional<double> rate_at(double place) const;     // finite rates only

 private:
  using Key = std::pair<int, double>;  // kind of load, its number
  static Key key_of(const formats::BenchPoint& point);
  double place(const Key& key) const;
  std::set<Key> loads_;
};
std::string load_text(const formats::BenchPoint& point);  // "4 requests/s", "burst", "32 users", "rate not recorded"

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
bool is_latency(SweepMetric metric);
std::string label_of(SweepMetric metric);  // "TTFT", "Output throughput"

struct MetricValue {
  double value = formats::kUnknown, high = formats::kUnknown;  // median, else mean; p99
};
MetricValue metric_value(const formats::BenchPoint& point, SweepMetric metric, double usd_per_hour);
// Returns USD per million tokens for a server with this hourly price and throughput.
double usd_per_million(double usd_per_hour, double tokens_per_second);

// The repeated measurements at one position of an axis.
struct ChartSample {
  double place = 0;
  double value = formats::kUnknown;                          // mean of the repeats
  double low = formats::kUnknown, high = formats::kUnknown;  // smallest value; largest p99, else largest value
  std::vector<size_t> points{};                              // indices in the set
};
using PlaceOf = std::function<double(const formats::BenchPoint&)>;
std::vector<ChartSample> samples_of(const formats::BenchSet& set, const std::vector<size_t>& points,
                                    const PlaceOf& place, SweepMetric metric);

// Describes stability, knee and SLO rate of a line in one sentence: "stable to 8, overloaded from 32 ...".
std::string verdict_text(const formats::BenchSet& set, const SweepLine& line, const options::Slo& slo);

// Returns the worst audit finding on a point for metrics whose name contains `field`; null if all are fine. Ignores
// findings about too few requests, which are shown elsewhere.
const audit::AuditFinding* worst_finding(const std::vector<audit::AuditFinding>& findings, size_t point,
                                         std::string_view field);

// Phases of a request in seconds since the start of the load. An unknown phase has the time of the phase before it.
struct RequestPhases {
  double intended = 0, sent = 0, scheduled = 0, first_token = 0, end = 0;
  bool failed = false;
  bool queue_known = false;  // whether the server reported when it scheduled the request
};
RequestPhases phases_of(const formats::RequestResult& request);

}  // namespace mw::views

template <>
inline constexpr mw::EnumNames<9> mw::kEnumNames<mw::views::SweepMetric>{
    "ttft",    "tpot", "itl", "e2el", "output_throughput", "total_token_throughput", "request_throughput",
    "goodput", "usd"};  // parts of vLLM's metric names
