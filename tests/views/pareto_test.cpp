// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/series.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/rng.h"

namespace mw::views {
namespace {

bool dominates(Point a, Point b) {
  return a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y);
}

TEST(Pareto, FrontHasExactlyThePointsThatNoOtherDominates) {
  const Rng rng{1, 2, 3};
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::vector<Point> points;
    for (std::uint64_t i = 0; i < 40; ++i)  // few values, so that many are equal
      points.push_back(
          {static_cast<double>(rng.at(round * 100 + i) % 8), static_cast<double>(rng.at(round * 100 + 50 + i) % 8)});
    const std::vector<bool> front = pareto_front(points);
    for (size_t i = 0; i < points.size(); ++i) {
      bool dominated = false;
      for (const Point& other : points) dominated |= dominates(other, points[i]);
      EXPECT_EQ(front[i], !dominated) << round << " " << i;
    }
  }
}

TEST(Pareto, HigherMayBeBetterAndGapsAreNeverOnTheFront) {
  const std::vector<Point> points{{1, 10}, {2, 20}, {3, 15}, {0.5, std::nan("")}};
  EXPECT_EQ(pareto_front(points, Better::lower, Better::higher), (std::vector<bool>{true, true, false, false}));
  EXPECT_TRUE(pareto_front({}).empty());
}

}  // namespace
}  // namespace mw::views
