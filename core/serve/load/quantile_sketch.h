// SPDX-License-Identifier: Apache-2.0
// Mean, deviation and percentiles of any number of values in 64 KiB. Plain value; not thread-safe.
#pragma once
#include <cstdint>
#include <vector>

#include "core/formats/results/bench_result.h"

namespace mw::serve {

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

}  // namespace mw::serve
