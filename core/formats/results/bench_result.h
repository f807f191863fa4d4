// SPDX-License-Identifier: Apache-2.0
// Results of serving benchmarks: one load point and a set of points, from Meshwright's sweeps, the simulator or other
// tools. JSON uses the field names of vLLM's `bench serve`, with times in ms. Plain values.
#pragma once
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/json.h"

namespace mw::formats {

using mw::to_string;

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct LatencyStats {  // in ms; kUnknown if the source lacks the value
  double mean = kUnknown, median = kUnknown, deviation = kUnknown;
  std::map<double, double> percentiles{};  // 99 -> p99
  bool known() const { return !std::isnan(mean) || !std::isnan(median) || !percentiles.empty(); }
  double percentile(double p) const;  // kUnknown if it is missing; 50 is the median
};

struct RequestResult {  // times in seconds since the start of the load
  double intended_s = 0, sent_s = 0, first_token_s = kUnknown, end_s = kUnknown;
  double scheduled_s = kUnknown;  // start of its first step
  int prompt_tokens = 0, cached_tokens = 0, output_tokens = 0, preemptions = 0;
  std::vector<float> gaps_ms{};  // inter-token latencies: output_tokens - 1 values, or empty
  std::string error{};           // empty if completed
  bool completed() const { return error.empty(); }
};

struct LoadSample {  // state of a server at one time
  double time_s = 0;
  int running = 0, waiting = 0;
  double kv_used = 0;          // fraction of the KV blocks, 0 to 1
  double output_tokens_s = 0;  // rate since the previous sample
};

struct ServingStepWork {  // the quantities that determine the time of a server's step
  double tokens = 0;      // computed
  double requests = 0;    // in the step
  double sampled = 0;     // rows of logits
  double read = 0;        // floats of keys and values read by decoded tokens
  double pairs = 0;       // (query, key) pairs of prompt chunks times the width of their heads, over layers
};

// A step, or the mean of similar ones; a replay simulates a load from these.
struct TimedStep {
  ServingStepWork work{};
  double seconds = 0;          // up to the next step if that follows immediately
  double count = 1;            // number of similar steps
  double progress = kUnknown;  // fraction of the load's output tokens generated before the step, 0 to 1
};

struct BenchPoint {
  double request_rate = kUnknown;     // requests/s; infinity: all at the start; kUnknown: closed loop
  int max_concurrency = 0;            // 0: unlimited
  double burstiness = 1;              // shape of the gamma distribution of arrivals; 1: Poisson
  int input_len = 0, output_len = 0;  // requested tokens
  long num_prompts = 0, completed = 0, failed = 0;
  double duration_s = kUnknown;
  long total_input_tokens = 0, total_output_tokens = 0;
  double request_throughput = kUnknown, output_throughput = kUnknown, total_token_throughput = kUnknown;
  double request_goodput = kUnknown;          // requests/s that meet every SLO
  double max_output_tokens_per_s = kUnknown;  // in the best second
  double max_concurrent_requests = kUnknown;
  LatencyStats ttft, tpot, itl, e2el;         // ttft and e2el from the time of sending, as in vLLM
  LatencyStats intended_ttft, intended_e2el;  // from the intended time of sending, including the queue in the client
  double prefix_hits = kUnknown;              // fraction of prompt tokens found in the prefix cache
  bool is_cold = false;                       // first rate of a server that keeps its prefix cache between rates
  std::string verdict{};                      // "stable", "backlogged", "overloaded", or empty
  std::vector<RequestResult> requests{};      // per-request results, or empty
  std::vector<LoadSample> timeline{};
  std::vector<TimedStep> steps{};  // only from Meshwright's engine
  std::string note{};              // about this point, e.g. "QPS is not published"
  Json rest = Json::object();      // other fields of the source
};

// Definitions of the metrics of a set. Comparisons report differences.
struct Definitions {
  // vLLM: (E2E - TTFT) / (n - 1); GuideLLM 0.4 and newer: E2E / n; GuideLLM 0.2 and 0.3: (E2E - TTFT) / n.
  enum class Tpot { after_first, with_first, after_first_per_token } tpot = Tpot::after_first;
  enum class Start { sent, intended } start = Start::sent;
  enum class Peak { mean, best_second, unclear } peak = Peak::mean;  // meaning of output_throughput
  bool operator==(const Definitions&) const = default;
};

enum class ResultProvenance { measured, predicted, imported };

struct BenchSet {
  std::string name{};
  ResultProvenance provenance = ResultProvenance::imported;
  std::string tool{}, source{};   // "vllm bench serve 0.19.0"; file, paper or run
  std::string model{}, target{};  // catalogue ids if known
  int chips = 0;
  double usd_per_hour = kUnknown;  // of all chips
  std::map<std::string, std::string>
      conditions{};  // "kv_dtype": "bf16", "prefix_cache": "on", "tp": "8", "version" ...
  Definitions definitions{};
  std::vector<BenchPoint> points{};
  std::vector<std::string> notes{};                     // about missing or contradictory data in the source
  std::string condition(const std::string& key) const;  // empty if it is not recorded
};

// Conversion to and from JSON. Infinity is written as "inf", unknown values are omitted, per-request fields are written
// with Detail::requests. bench_point and bench_set throw BENCH naming the field.
enum class Detail { summary, requests };
Json to_json(const BenchPoint& point, Detail detail);
BenchPoint bench_point(const Json& json);
Json to_json(const BenchSet& set, Detail detail);
BenchSet bench_set(const Json& json);

// Linear interpolation between ranks, like numpy.percentile. The values need not be sorted.
double percentile_of(std::vector<double> values, double p);
LatencyStats latency_stats(const std::vector<double>& ms);  // mean, median, population deviation, p25 to p99

// The set with the same name, tool, model, target, cost, conditions and definitions as `facts`; added if there is none.
BenchSet& find_or_add_set(std::vector<BenchSet>& sets, const BenchSet& facts);
void number_equal_names(std::vector<BenchSet>& sets);  // appends " 1", " 2", ... to names that occur more than once

}  // namespace mw::formats

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::formats::Definitions::Tpot>{"after_first", "with_first",
                                                                                 "after_first_per_token"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::formats::Definitions::Start>{"sent", "intended"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::formats::Definitions::Peak>{"mean", "best_second", "unclear"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::formats::ResultProvenance>{"measured", "predicted", "imported"};
