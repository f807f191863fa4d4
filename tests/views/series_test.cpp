// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/base/rng.h"

namespace mw::views {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Series random_series(size_t n, std::uint64_t seed, double gaps = 0.1) {
  Rng rng({seed});
  Series s;
  double x = 0;
  for (size_t i = 0; i < n; ++i) {
    x += rng.below(4) == 0 ? 0.0 : static_cast<double>(rng.next_uniform());
    s.append(x, rng.next_uniform() < gaps ? kNan : static_cast<double>(rng.next_uniform()) - 0.5);
  }
  return s;
}

std::optional<Range> slow_range(const Series& s, double x0, double x1) {
  std::optional<Range> r;
  for (size_t i = 0; i < s.size(); ++i) {
    const Point p = s[i];
    if (p.x < x0 || p.x > x1 || std::isnan(p.y)) continue;
    r = r ? Range{std::min(r->min, p.y), std::max(r->max, p.y)} : Range{p.y, p.y};
  }
  return r;
}

TEST(Series, RangeOfAnyWindowEqualsASlowScan) {
  for (const size_t n : {1u, 2u, 3u, 4u, 5u, 15u, 16u, 17u, 63u, 64u, 65u, 1000u, 4096u}) {
    const Series s = random_series(n, n);
    Rng rng({n, 7});
    const double span = s.back().x;
    for (int i = 0; i < 200; ++i) {
      const double a = static_cast<double>(rng.next_uniform()) * span * 1.2 - 0.1 * span;
      const double b = a + static_cast<double>(rng.next_uniform()) * span;
      ASSERT_EQ(s.y_range(a, b), slow_range(s, a, b)) << n << ' ' << a << ' ' << b;
    }
  }
}

TEST(Series, TruncatedEqualsOneThatNeverHadTheRest) {
  for (const size_t keep : {0u, 1u, 3u, 4u, 15u, 16u, 64u, 100u, 257u}) {
    Series s = random_series(300, 3);
    Series expected;
    for (size_t i = 0; i < keep; ++i) expected.append(s[i].x, s[i].y);
    s.truncate(keep);
    for (size_t i = keep; i < 280; ++i) {
      const double x = 1000.0 + static_cast<double>(i), y = std::sin(x);
      s.append(x, y);
      expected.append(x, y);
    }
    EXPECT_EQ(s, expected);
    EXPECT_EQ(s.y_range(-1e9, 1e9), slow_range(expected, -1e9, 1e9));
    EXPECT_EQ(s.decimate_indices(0, 1e4, 20), expected.decimate_indices(0, 1e4, 20));
  }
}

TEST(Series, DecimationKeepsEachColumnsExtremesInTimeOrder) {
  for (const int columns : {1, 2, 7, 64, 500}) {
    const Series s = random_series(20000, 11, 0.2);
    const double x0 = s.back().x * 0.21, x1 = s.back().x * 0.77;
    const auto kept = s.decimate_indices(x0, x1, columns);
    ASSERT_TRUE(std::is_sorted(kept.begin(), kept.end()));
    ASSERT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
    ASSERT_LE(kept.size(), 2u * static_cast<size_t>(columns) + 2);
    const auto [begin, end] = s.window(x0, x1);
    EXPECT_EQ(kept.front(), begin - 1);  // the neighbours carry the line to the edges
    EXPECT_EQ(kept.back(), end);
    for (int c = 0; c < columns; ++c) {
      const double lo = x0 + (x1 - x0) * c / columns, hi = x0 + (x1 - x0) * (c + 1) / columns;
      std::optional<Range> all, shown;
      const auto widen = [](std::optional<Range>& r, double y) {
        r = r ? Range{std::min(r->min, y), std::max(r->max, y)} : Range{y, y};
      };
      for (size_t i = begin; i < end; ++i)
        if (const Point p = s[i]; !std::isnan(p.y) && (p.x > lo || c == 0) && (p.x <= hi || c + 1 == columns))
          widen(all, p.y);
      for (const size_t i : kept)
        if (const Point p = s[i];
            i >= begin && i < end && !std::isnan(p.y) && (p.x > lo || c == 0) && (p.x <= hi || c + 1 == columns))
          widen(shown, p.y);
      ASSERT_EQ(shown, all) << "column " << c << " of " << columns;
    }
  }
}

TEST(Series, AWindowOfFewSamplesIsDrawnAsItIs) {
  const Series s = random_series(50, 5);
  const auto points = s.decimate(-10, 1e9, 100);
  ASSERT_EQ(points.size(), 50u);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(points[i].x, s[i].x);
    EXPECT_EQ(std::isnan(points[i].y), std::isnan(s[i].y));
  }
}

TEST(Series, GapsRemainWhenZoomedOut) {
  Series s;
  for (int i = 0; i < 10000; ++i) s.append(i, i >= 4000 && i < 6000 ? kNan : i % 7);
  const auto points = s.decimate(0, 9999, 100);
  const auto gaps = std::count_if(points.begin(), points.end(), [](Point p) { return std::isnan(p.y); });
  EXPECT_GE(gaps, 18);
  for (const Point& p : points) {
    if (p.x >= 4100 && p.x < 5900) {
      EXPECT_TRUE(std::isnan(p.y)) << p.x;
    }
  }
}

TEST(Series, EmptyAndDegenerateWindowsAnswerWithoutSamples) {
  Series s;
  EXPECT_TRUE(s.decimate(0, 1, 10).empty());
  EXPECT_TRUE(s.empty());
  EXPECT_FALSE(s.y_range(0, 1));
  EXPECT_FALSE(s.nearest(0));
  s.append(1, kNan);
  EXPECT_FALSE(s.y_range(0, 2));
  EXPECT_EQ(s.decimate(0, 2, 10).size(), 1u);
  EXPECT_TRUE(s.decimate(2, 0, 10).empty());
  EXPECT_TRUE(s.decimate(0, 2, 0).empty());
  EXPECT_TRUE(s.decimate(kNan, 2, 10).empty());
  EXPECT_EQ(s.decimate(5, 6, 10).size(), 1u);  // the neighbour on the left
}

TEST(Series, BackwardXIsRaisedAndInfinityIsAGap) {
  Series s;
  s.append(3, 1);
  s.append(2, 2);
  s.append(kNan, 3);
  s.append(4, std::numeric_limits<double>::infinity());
  EXPECT_EQ(s[1].x, 3);
  EXPECT_EQ(s[2].x, 3);
  EXPECT_TRUE(std::isnan(s[3].y));
}

TEST(Series, NearestSampleForACursor) {
  Series s;
  for (const double x : {1.0, 2.0, 4.0}) s.append(x, x);
  EXPECT_EQ(s.nearest(-5), 0u);
  EXPECT_EQ(s.nearest(1.4), 0u);
  EXPECT_EQ(s.nearest(3.5), 2u);
  EXPECT_EQ(s.nearest(99), 2u);
}

TEST(Series, DecimatesAMillionSamplesToAFewForEachPixel) {
  Series s;
  Rng rng({1});
  for (int i = 0; i < 1000000; ++i) s.append(i, static_cast<double>(rng.next_uniform()));
  size_t work = 0;
  for (int i = 0; i < 100; ++i) work += s.decimate_indices(i, 1e6 - i, 1200).size();
  EXPECT_GT(work, 100000u);
  EXPECT_LE(work, 100u * 1200 * 5);
}

TEST(Smoothed, MatchesTheBiasCorrectedAverage) {
  Series raw;
  Smoothed smooth(0.6);
  double average = 0;
  int n = 0;
  for (int i = 0; i < 200; ++i) {
    const double y = i % 17 == 3 ? kNan : std::cos(i * 0.3) + 2;
    raw.append(i, y);
    smooth.follow(raw);
    if (std::isnan(y)) {
      EXPECT_TRUE(std::isnan(smooth.series().back().y));
      continue;
    }
    average = 0.6 * average + 0.4 * y;
    ++n;
    EXPECT_NEAR(smooth.series().back().y, average / (1 - std::pow(0.6, n)), 1e-12);
  }
}

TEST(Smoothed, OfAConstantIsThatConstantFromTheFirstSample) {
  Series raw;
  for (int i = 0; i < 50; ++i) raw.append(i, 4.25);
  Smoothed smooth(0.99);
  smooth.follow(raw);
  for (size_t i = 0; i < raw.size(); ++i) EXPECT_NEAR(smooth.series()[i].y, 4.25, 1e-12);
}

TEST(Smoothed, AllAtOnceEqualsOneByOneAndWeightZeroIsRaw) {
  const Series all = random_series(500, 9);
  Series grown;
  Smoothed step_by_step(0.8), at_once(0.8);
  for (size_t i = 0; i < all.size(); ++i) {
    grown.append(all[i].x, all[i].y);
    step_by_step.follow(grown);
  }
  at_once.follow(all);
  EXPECT_EQ(step_by_step, at_once);
  at_once.set_weight(0, all);
  EXPECT_EQ(at_once.series(), all);
}

}  // namespace
}  // namespace mw::views
