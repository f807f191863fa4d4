// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace mw {
namespace {

TEST(Rng, MixMatchesPublishedSplitMix64Sequence) {
  // SplitMix64 seeded with 0: outputs are mix64(0), mix64(golden), mix64(2 golden) (Steele et al.; Vigna's
  // splitmix64.c).
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafull);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15ull), 0x6e789e6aa1b965f4ull);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15ull * 2), 0x06c45d188009454full);
}

TEST(Rng, ValuesDependOnlyOnIdentityAndIndex) {
  const Rng a({1, 2, 3});
  Rng b({1, 2, 3});
  std::vector<std::uint64_t> in_order;
  for (int i = 0; i < 100; ++i) in_order.push_back(b.next());
  for (int i = 99; i >= 0; --i) EXPECT_EQ(a.at(static_cast<std::uint64_t>(i)), in_order[static_cast<size_t>(i)]);
}

TEST(Rng, DifferentIdentitiesGiveDifferentStreams) {
  std::set<std::uint64_t> seen;
  size_t drawn = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (std::uint64_t step = 0; step < 20; ++step)
      for (std::uint64_t i = 0; i < 20; ++i, ++drawn) seen.insert(Rng({seed, step}).at(i));
  EXPECT_EQ(seen.size(), drawn);
  EXPECT_NE(Rng({1, 2}).at(0), Rng({2, 1}).at(0));
  EXPECT_NE(Rng({1}).at(0), Rng({1, 0}).at(0));
}

TEST(Rng, BelowIsUniform) {
  constexpr size_t kBins = 37;
  constexpr int kDraws = 370000;
  std::array<int, kBins> count{};
  Rng rng({7});
  for (int i = 0; i < kDraws; ++i) {
    const auto v = rng.below(kBins);
    ASSERT_LT(v, kBins);
    ++count[v];
  }
  double chi2 = 0;
  for (const int c : count) chi2 += std::pow(c - 10000.0, 2) / 10000.0;
  EXPECT_LT(chi2, 67.99);  // 99.9 % quantile at 36 degrees of freedom
  EXPECT_GT(chi2, 12);     // too even would not be random either
}

TEST(Rng, UniformIsEvenOnUnitInterval) {
  const Rng rng({8, 1});
  double sum = 0, squares = 0, lag = 0;
  constexpr int kN = 200000;
  float previous = 0.5f;
  for (std::uint64_t i = 0; i < kN; ++i) {
    const float u = rng.uniform_at(i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += static_cast<double>(u) * u;
    lag += (u - 0.5) * (previous - 0.5);
    previous = u;
  }
  EXPECT_NEAR(sum / kN, 0.5, 0.003);
  EXPECT_NEAR(squares / kN, 1.0 / 3, 0.003);
  EXPECT_NEAR(lag / kN, 0, 0.001);
}

TEST(Rng, NormalHasExpectedMomentsAndTails) {
  const Rng rng({9});
  constexpr int kN = 200000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  int beyond_two = 0;
  for (std::uint64_t i = 0; i < kN; ++i) {
    const double z = rng.normal_at(i);
    ASSERT_TRUE(std::isfinite(z));
    m1 += z;
    m2 += z * z;
    m3 += z * z * z;
    m4 += z * z * z * z;
    beyond_two += std::abs(z) > 2;
  }
  EXPECT_NEAR(m1 / kN, 0, 0.01);
  EXPECT_NEAR(m2 / kN, 1, 0.015);
  EXPECT_NEAR(m3 / kN, 0, 0.04);
  EXPECT_NEAR(m4 / kN, 3, 0.1);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kN, 0.0455, 0.002);
}

}  // namespace
}  // namespace mw
