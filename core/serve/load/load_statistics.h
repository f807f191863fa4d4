// SPDX-License-Identifier: Apache-2.0
// The metrics of a load from its events in order of time, without keeping requests: memory does not depend on their
// number. Not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/load/load.h"
#include "core/serve/load/saturation.h"

namespace mw::serve {

// Mean, deviation and percentiles of any number of values in 64 KiB. Plain value; not thread-safe.

// Counts values in buckets whose bounds grow by a constant factor (DDSketch, Masson et al., VLDB 2019). A percentile is
// within kError of the exact one, relative to it; values from 0 to kLeast count as 0. Mean and deviation are exact up
// to rounding.
class QuantileSketch {
 public:
  static constexpr double kError = 0.004, kLeast = 1e-6, kMost = 1e9;  // in ms: a nanosecond to eleven days
  void add(double value, std::int64_t times = 1);                      // 0 or more; larger than kMost counts as kMost
  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  double percentile(double p) const;    // between ranks as formats::percentile_of(); 0 without values
  formats::LatencyStats stats() const;  // as formats::latency_stats()

 private:
  double at_rank(double rank) const;
  std::vector<std::int64_t> buckets_;  // the first: values up to kLeast
  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // sum of squared distances from the mean
  double last_ = -1;               // value and bucket of the last call
  size_t last_bucket_ = 0;
};

class LoadStatistics {
 public:
  LoadStatistics(const options::LoadSettings& load, const options::Slo& slo) : load_(load), slo_(slo) {}
  void sent(double at_s) { flight(at_s, 1); }
  void tokens(double at_s, std::int64_t count);  // sampled in one step
  void gaps(float ms, std::int64_t count) { itl_.add(ms, count); }
  // `index` in order of arrival; without gaps.
  void finished(std::int64_t index, const formats::RequestResult& request);
  // Call it once, with the share of prompt tokens from the prefix cache.
  formats::BenchPoint take(std::vector<formats::LoadSample> timeline, double prefix_hits);

 private:
  // Requests in flight; those that end count before those that are sent at the same time.
  void flight(double at_s, int change);
  double share_of_ends() const;

  options::LoadSettings load_;
  options::Slo slo_;
  formats::BenchPoint point_{};
  QuantileSketch ttft_, tpot_, itl_, e2el_, intended_ttft_, intended_e2el_, service_, wait_, unserved_;
  long good_ = 0;
  double first_intended_ = 0, last_intended_ = 0, last_end_ = 0, prompt_ = 0;
  std::int64_t second_ = -1, in_second_ = 0, best_second_ = 0;
  double flight_s_ = 0;
  int in_flight_ = 0, sent_now_ = 0, most_in_flight_ = 0;
  struct Part {
    std::int64_t count = 0;
    double time = 0, ttft = 0;
  };
  std::array<Part, kEvidenceParts> parts_{};
  std::array<double, 2> arrival_at_{}, end_at_{};  // of the first and the last tenth of the requests
};

// The metrics of a load point, defined as in `vllm bench serve`. Pure functions; any thread.

// Computes all metrics of a point from its requests. Failed requests are counted but not timed.
formats::BenchPoint summarise(const Load& load, const LoadResult& result, const options::Slo& slo);

// Parts of it, for a load whose requests are not kept.
double tpot_ms(const formats::RequestResult& request);  // mean per token after the first; kUnknown for a single token
bool meets(const formats::RequestResult& request, const options::Slo& slo);
void set_load(formats::BenchPoint& point, const options::LoadSettings& settings);
void set_rates(formats::BenchPoint& point, long good, const options::Slo& slo);  // from its counts and duration

}  // namespace mw::serve
