// SPDX-License-Identifier: Apache-2.0
// One load point of a serving benchmark and a set of them, whoever made them: this program's sweeps, the simulator, or
// files of other tools. JSON names are those of vLLM's `bench serve`; times in ms there. Plain values.
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::formats {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct LatencyStats {  // ms; kUnknown where the source does not say
  double mean = kUnknown, median = kUnknown, deviation = kUnknown;
  std::map<double, double> percentiles{};  // 99 -> p99
  bool known() const;
  double percentile(double p) const;  // kUnknown where it is not there; 50 is the median
};

struct RequestResult {  // of one request; seconds since the point's load began
  double intended_s = 0, sent_s = 0, first_token_s = kUnknown, end_s = kUnknown;
  double scheduled_s = kUnknown;  // entered its first step
  int prompt_tokens = 0, cached_tokens = 0, output_tokens = 0, preemptions = 0;
  std::vector<float> gaps_ms{};  // between tokens: output_tokens - 1 of them, where recorded
  std::string error{};           // empty: completed
  bool completed() const { return error.empty(); }
};

struct LoadSample {  // a server's state at an instant
  double time_s = 0;
  int running = 0, waiting = 0;
  double kv_used = 0;          // share of the blocks, 0..1
  double output_tokens_s = 0;  // rate since the sample before
};

// Steps of a server that were alike, timed together: what a load can be simulated from where it was measured.
struct StepTime {
  double tokens = 0, requests = 0, sampled = 0;  // of a step: computed, in it, rows of logits
  double read = 0, pairs = 0;                    // as serve::StepWork
  double seconds = 0;                            // of a step, to the next one where that came at once
  long count = 1;
  double progress = kUnknown;  // share of the load's output tokens generated before the step, 0..1
};

struct BenchPoint {
  double request_rate = kUnknown;     // requests/s; infinity: all at once; kUnknown: closed loop
  int max_concurrency = 0;            // 0: no cap
  double burstiness = 1;              // of gamma arrivals; 1: Poisson
  int input_len = 0, output_len = 0;  // asked for, tokens
  long num_prompts = 0, completed = 0, failed = 0;
  double duration_s = kUnknown;
  long total_input_tokens = 0, total_output_tokens = 0;
  double request_throughput = kUnknown, output_throughput = kUnknown, total_token_throughput = kUnknown;
  double request_goodput = kUnknown;          // requests/s that meet every SLO
  double max_output_tokens_per_s = kUnknown;  // best second
  double max_concurrent_requests = kUnknown;  // most in flight
  LatencyStats ttft, tpot, itl, e2el;         // ttft and e2el from the moment of sending, as vLLM counts
  LatencyStats intended_ttft, intended_e2el;  // from the intended moment: waiting in the client included
  double prefix_hits = kUnknown;              // share of prompt tokens found in the prefix cache
  std::string verdict{};                      // "stable", "backlogged", "overloaded"; empty: not known
  std::vector<RequestResult> requests{};      // detailed results, or none
  std::vector<LoadSample> timeline{};
  std::vector<StepTime> steps{};  // of an engine that tells them: this program's
  std::string note{};             // of this point alone, e.g. "QPS is not published"
  Json rest = Json::object();     // fields of the source that are none of these, kept
};

// How the numbers of a set were counted. Sets that differ in one of these are not compared silently.
struct Definitions {
  // (E2E - TTFT)/(n-1) of vLLM; E2E/n of GuideLLM from 0.4 on; (E2E - TTFT)/n of GuideLLM 0.2 and 0.3.
  enum class Tpot { after_first, with_first, after_first_per_token } tpot = Tpot::after_first;
  enum class Start { sent, intended } start = Start::sent;
  enum class Peak { mean, best_second, unclear } peak = Peak::mean;  // what output_throughput is
  bool operator==(const Definitions&) const = default;
};

enum class Provenance { measured, predicted, imported };
std::string_view to_string(Provenance provenance);

struct BenchSet {
  std::string name{};
  Provenance provenance = Provenance::imported;
  std::string tool{}, source{};   // "vllm bench serve 0.19.0"; file, paper, run: where it is from
  std::string model{}, target{};  // catalogue ids where known
  int chips = 0;
  double usd_per_hour = kUnknown;  // of all chips together
  std::map<std::string, std::string>
      conditions{};  // "kv_dtype": "bf16", "prefix_cache": "on", "tp": "8", "version" ...
  Definitions definitions{};
  std::vector<BenchPoint> points{};
  std::vector<std::string> notes{};  // what the source leaves out or says twice
};

// vLLM's field names; inf written as "inf" as vLLM does, unknown left out. Detailed fields where there are requests.
// from_json throws Error BENCH naming the field, what was found and expected.
enum class Detail { summary, requests };
Json to_json(const BenchPoint& point, Detail detail);
BenchPoint bench_point(const Json& json);
Json to_json(const BenchSet& set, Detail detail);
BenchSet bench_set(const Json& json);

// Of sorted or unsorted values: linear between ranks, as numpy.percentile.
double percentile_of(std::vector<double> values, double p);
LatencyStats latency_stats(const std::vector<double>& ms);  // mean, median, deviation (population), p25 .. p99

}  // namespace mw::formats
