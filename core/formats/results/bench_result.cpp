// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mw::formats {

bool LatencyStats::known() const {
  return !std::isnan(mean) || !std::isnan(median) || !percentiles.empty();
}

double LatencyStats::percentile(double p) const {
  if (p == 50 && !std::isnan(median)) return median;
  const auto found = percentiles.find(p);
  return found == percentiles.end() ? kUnknown : found->second;
}

namespace {

// Percentiles in ascending order by selection: a long sweep has millions of gaps between tokens, and no one else wants
// them sorted.
class Ranks {
 public:
  explicit Ranks(std::vector<double>& values) : values_(values) {}
  double at(double p) {
    const double rank = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values_.begin() + done_, values_.begin() + below, values_.end());
    done_ = below;
    const double low = values_[static_cast<size_t>(below)];
    const auto above = std::min_element(values_.begin() + below + 1, values_.end());
    return above == values_.end() ? low : low + (rank - static_cast<double>(below)) * (*above - low);
  }

 private:
  std::vector<double>& values_;
  std::ptrdiff_t done_ = 0;  // what comes before is no larger than the rest
};

std::vector<double> known_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values;
}

}  // namespace

double percentile_of(std::vector<double> values, double p) {
  values = known_of(std::move(values));
  return values.empty() ? kUnknown : Ranks(values).at(p);
}

LatencyStats latency_stats(const std::vector<double>& ms) {
  LatencyStats stats;
  std::vector<double> values = known_of(ms);
  if (values.empty()) return stats;
  const auto n = static_cast<double>(values.size());
  stats.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - stats.mean) * (v - stats.mean);
  stats.deviation = std::sqrt(squares / n);
  Ranks ranks(values);
  for (const double p : {25, 50, 75, 90, 95, 99}) (p == 50 ? stats.median : stats.percentiles[p]) = ranks.at(p);
  return stats;
}

}  // namespace mw::formats
