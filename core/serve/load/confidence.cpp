// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/confidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/units.h"

namespace mw::serve {
namespace {

constexpr double kTail = (1 - kConfidence) / 2;

// The 97.5 % quantiles of Student's t by degrees of freedom, from 1 (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
constexpr std::array kStudent{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                              2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                              2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;

double log_choose(double n, double k) {
  int sign = 0;  // std::lgamma writes it to a global
  return ::lgamma_r(n + 1, &sign) - ::lgamma_r(k + 1, &sign) - ::lgamma_r(n - k + 1, &sign);
}

std::string percent_text(double share) {
  return "p" + number_text(100 * share, 3);
}

}  // namespace

double student_t(size_t degrees) {
  return degrees <= kStudent.size() ? kStudent[degrees - 1] : kNormal;
}

// The number of samples below the percentile is binomial with n and q. Its terms beyond 12 deviations are below the
// precision of a double.
RankInterval rank_interval(double p, long samples) {
  const double q = p / 100, n = static_cast<double>(samples), reach = 12 * std::sqrt(n * q * (1 - q)) + 12;
  const long first = std::max(0L, static_cast<long>(std::floor(n * q - reach)));
  RankInterval interval;
  double below = 0;  // probability of fewer than k samples below the percentile
  for (long k = first; k <= samples; ++k) {
    if (below <= kTail && k >= 1) interval.low = k;
    if (below >= 1 - kTail && k >= 1) {
      interval.high = k;
      break;
    }
    const double m = static_cast<double>(k);
    below += std::exp(log_choose(n, m) + m * std::log(q) + (n - m) * std::log1p(-q));
  }
  return interval;
}

long samples_needed(double p) {
  const double q = std::max(p, 100 - p) / 100;
  return static_cast<long>(std::ceil(std::log(kTail) / std::log(q)));
}

std::string percentile_text(double p, long samples) {
  const std::string what = percent_text(p / 100) + " of " + std::to_string(samples) + " requests ";
  const RankInterval interval = rank_interval(p, samples);
  if (interval.low && interval.high) {
    const auto share = [samples](long rank) {
      return percent_text(static_cast<double>(rank) / static_cast<double>(samples));
    };
    return what + "lies between " + share(*interval.low) + " and " + share(*interval.high) +
           " of them at 95 % confidence";
  }
  return what + "has no " + (interval.low ? "upper" : "lower") + " bound at 95 % confidence; " +
         std::to_string(samples_needed(p)) + " requests are needed";
}

MeanInterval mean_interval(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2)
    return {mean, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double half = student_t(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

}  // namespace mw::serve
