// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/saturation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/rng.h"

namespace mw::serve {
namespace {

// Table values: for a median of 20 the ranks 6 and 15 (Conover, Practical Nonparametric Statistics, 3.2).
TEST(RankInterval, IsThatOfTheBinomialDistribution) {
  const RankInterval median = rank_interval(50, 20);
  EXPECT_EQ(median.low, std::optional<long>(6));
  EXPECT_EQ(median.high, std::optional<long>(15));
  EXPECT_FALSE(rank_interval(50, 5).low || rank_interval(50, 5).high);
  EXPECT_EQ(rank_interval(50, 6).low, std::optional<long>(1));
  EXPECT_EQ(rank_interval(50, 6).high, std::optional<long>(6));
}

TEST(RankInterval, NeedsEnoughSamplesForAPercentile) {
  EXPECT_EQ(samples_needed(99), 368);
  EXPECT_EQ(samples_needed(50), 6);
  EXPECT_EQ(samples_needed(90), 36);
  EXPECT_FALSE(rank_interval(99, 367).high);
  EXPECT_EQ(rank_interval(99, 368).high, std::optional<long>(368));
  EXPECT_TRUE(rank_interval(99, 100).low.has_value());
  // Far from the small numbers: 3.7 deviations of a binomial on both sides, at ten million.
  const RankInterval many = rank_interval(99, 10'000'000);
  const double deviation = std::sqrt(1e7 * 0.99 * 0.01);
  EXPECT_NEAR(static_cast<double>(*many.low), 9.9e6 - 1.96 * deviation, 2);
  EXPECT_NEAR(static_cast<double>(*many.high), 9.9e6 + 1.96 * deviation, 3);
}

TEST(RankInterval, CoversThePercentileOfADistribution) {
  constexpr int kTrials = 2000, kSamples = 500;
  const RankInterval ranks = rank_interval(90, kSamples);
  const double truth = -std::log(0.1);  // of the exponential distribution
  const Rng rng{7, 1, 2};
  int covered = 0;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> values;
    for (int i = 0; i < kSamples; ++i) {
      const auto bits = rng.at(static_cast<std::uint64_t>(t * kSamples + i));
      values.push_back(-std::log((static_cast<double>(bits >> 11U) + 0.5) / 9007199254740992.0));
    }
    std::sort(values.begin(), values.end());
    covered +=
        values[static_cast<size_t>(*ranks.low - 1)] <= truth && truth <= values[static_cast<size_t>(*ranks.high - 1)];
  }
  EXPECT_GT(covered, 0.94 * kTrials);
  EXPECT_LT(covered, 0.975 * kTrials);
}

TEST(RankInterval, SaysWhatAPercentileNeeds) {
  EXPECT_EQ(percentile_text(99, 100),
            "p99 of 100 requests has no upper bound at 95 % confidence; 368 requests are needed");
  EXPECT_EQ(percentile_text(50, 20), "p50 of 20 requests lies between p30 and p75 of them at 95 % confidence");
}

TEST(MeanInterval, IsStudents) {
  const std::vector<double> values{1, 2, 3, 4, 5};
  const MeanInterval interval = mean_interval(values);
  EXPECT_DOUBLE_EQ(interval.mean, 3);
  EXPECT_NEAR(interval.high - 3, 2.776 * std::sqrt(2.5 / 5), 1e-9);  // t of 4 degrees of freedom
  EXPECT_NEAR(3 - interval.low, interval.high - 3, 1e-12);
  const MeanInterval single = mean_interval(std::vector<double>{7});
  EXPECT_EQ(single.mean, 7);
  EXPECT_TRUE(std::isinf(single.low) && std::isinf(single.high));
}

}  // namespace
}  // namespace mw::serve
