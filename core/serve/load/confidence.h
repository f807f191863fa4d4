// SPDX-License-Identifier: Apache-2.0
// How well a percentile or a mean is known from a number of samples, at 95 % confidence. Pure functions; any thread.
#pragma once
#include <optional>
#include <span>
#include <string>

namespace mw::serve {

inline constexpr double kConfidence = 0.95;

// The percentile p of a distribution lies between the samples of these ranks (1: the smallest of n) with 95 %
// confidence, whatever the distribution. No rank: the samples give no bound on that side.
struct RankInterval {
  std::optional<long> low{}, high{};
};
RankInterval rank_interval(double p, long samples);  // 0 < p < 100
// The number of samples from which both bounds exist: 368 for p99.
long samples_needed(double p);
// "p99 of 100 requests has no upper bound at 95 % confidence; 368 requests are needed" or "p99 of 1000 requests lies
// between p98.4 and p99.7 of them at 95 % confidence".
std::string percentile_text(double p, long samples);

// Student's t of a two-sided 95 % interval; from 1 degree of freedom.
double student_t(size_t degrees);

// The mean of independent values with its 95 % interval by Student's t. One value has no interval: low is -infinity and
// high infinity. Needs at least one value.
struct MeanInterval {
  double mean = 0, low = 0, high = 0;
};
MeanInterval mean_interval(std::span<const double> values);

}  // namespace mw::serve
