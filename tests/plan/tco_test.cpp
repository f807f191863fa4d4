// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/total_cost.h"

#include <gtest/gtest.h>

namespace mw::plan {
namespace {

// arXiv 2605.25645, from its own hours and rates.
const Tco kTpu{.name = "TPU", .train_hours = 3.34, .train_usd_per_hour = 16.80, .serve_usd_per_hour = 21.52};
const Tco kGpu{.name = "GPU", .train_hours = 5.39, .train_usd_per_hour = 22.12, .serve_usd_per_hour = 22.12};

TEST(Tco, IsThatOfThePaperToTheCent) {
  EXPECT_NEAR(kTpu.train().value, 56.11, 0.005);
  EXPECT_NEAR(kGpu.train().value, 119.23, 0.005);
  EXPECT_NEAR(kTpu.after(1).value, 77.63, 0.005);
  EXPECT_NEAR(kGpu.after(1).value, 141.35, 0.005);
  EXPECT_NEAR(kTpu.after(8).value, 228.27, 0.01);
  EXPECT_NEAR(kGpu.after(8).value, 296.19, 0.01);
  EXPECT_NEAR(kTpu.after(24).value, 572.59, 0.01);
  EXPECT_NEAR(kGpu.after(24).value, 650.11, 0.01);
}

TEST(Tco, AdvantageOfOneHourIsNotThatOfADay) {
  EXPECT_NEAR(kGpu.after(1).value / kTpu.after(1).value, 1.82, 0.005);
  EXPECT_NEAR(kGpu.after(24).value / kTpu.after(24).value, 1.14, 0.005);
}

TEST(BreakEven, IsWhereBothHaveCostTheSame) {
  EXPECT_FALSE(break_even_hours(kTpu, kGpu));
  Tco dear_to_serve = kTpu;
  dear_to_serve.serve_usd_per_hour = 30;
  const auto hours = break_even_hours(dear_to_serve, kGpu);
  ASSERT_TRUE(hours);
  EXPECT_NEAR(dear_to_serve.after(*hours).value, kGpu.after(*hours).value, 1e-9);
  EXPECT_EQ(break_even_hours(kGpu, dear_to_serve), hours);
}

}  // namespace
}  // namespace mw::plan
