// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/quantile_sketch.h"

#include <algorithm>
#include <cmath>

namespace mw::serve {
namespace {

const double kGrowth = (1 + QuantileSketch::kError) / (1 - QuantileSketch::kError);
const double kPerLog = 1 / std::log(kGrowth);

size_t bucket_of(double value) {
  if (!(value > QuantileSketch::kLeast)) return 0;
  const double steps = std::log(std::min(value, QuantileSketch::kMost) / QuantileSketch::kLeast) * kPerLog;
  return 1 + static_cast<size_t>(steps);
}

// The value whose largest relative distance to the bounds of the bucket is kError.
double value_of(size_t bucket) {
  if (bucket == 0) return 0;
  const double low = QuantileSketch::kLeast * std::exp(static_cast<double>(bucket - 1) / kPerLog);
  return low * (1 + QuantileSketch::kError);
}

}  // namespace

void QuantileSketch::add(double value, std::int64_t times) {
  if (times < 1) return;
  if (value != last_) last_ = value, last_bucket_ = bucket_of(value);
  if (last_bucket_ >= buckets_.size()) buckets_.resize(last_bucket_ + 1);
  buckets_[last_bucket_] += times;
  const double distance = value - mean_, n = static_cast<double>(times);
  count_ += times;
  mean_ += distance * n / static_cast<double>(count_);
  squares_ += distance * (value - mean_) * n;
}

double QuantileSketch::at_rank(double rank) const {
  std::int64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i)
    if (static_cast<double>(below += buckets_[i]) > rank) return value_of(i);
  return buckets_.empty() ? 0 : value_of(buckets_.size() - 1);
}

double QuantileSketch::percentile(double p) const {
  if (count_ == 0) return 0;
  const double rank = p / 100 * static_cast<double>(count_ - 1), lower = std::floor(rank);
  const double low = at_rank(lower), high = at_rank(std::min(lower + 1, static_cast<double>(count_ - 1)));
  return low + (high - low) * (rank - lower);
}

formats::LatencyStats QuantileSketch::stats() const {
  formats::LatencyStats stats;
  if (count_ == 0) return stats;
  stats.mean = mean_;
  stats.deviation = std::sqrt(squares_ / static_cast<double>(count_));
  for (const double p : {25, 50, 75, 90, 95, 99}) (p == 50 ? stats.median : stats.percentiles[p]) = percentile(p);
  return stats;
}

}  // namespace mw::serve
