// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/settings.h"

#include <gtest/gtest.h>

namespace mw::train {
namespace {

TEST(LearningRate, WarmsUpLinearlyThenFollowsSchedule) {
  options::LearningRateSchedule rate{
      .schedule = options::Schedule::cosine, .peak = 1.0, .final_ratio = 0.1, .warmup = 4, .steps = 24};
  EXPECT_DOUBLE_EQ(learning_rate(rate, 1), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(rate, 4), 1.0);
  EXPECT_NEAR(learning_rate(rate, 14), 0.55, 1e-12);  // half-way: mean of peak and final
  EXPECT_NEAR(learning_rate(rate, 24), 0.1, 1e-12);
  rate.schedule = options::Schedule::linear;
  EXPECT_NEAR(learning_rate(rate, 9), 1.0 - 0.25 * 0.9, 1e-12);
  rate.schedule = options::Schedule::constant;
  EXPECT_DOUBLE_EQ(learning_rate(rate, 24), 1.0);
  rate.warmup = 0;
  EXPECT_DOUBLE_EQ(learning_rate(rate, 1), 1.0);
}

TEST(LearningRate, StaysWithinBounds) {
  for (const options::Schedule s : {options::Schedule::cosine, options::Schedule::linear, options::Schedule::constant})
    for (long warmup : {0L, 1L, 10L, 50L, 100L}) {
      const options::LearningRateSchedule rate{
          .schedule = s, .peak = 2e-3, .final_ratio = 0, .warmup = warmup, .steps = 50};
      for (long step = 1; step <= 50; ++step) {
        EXPECT_GE(learning_rate(rate, step), 0);
        EXPECT_LE(learning_rate(rate, step), 2e-3 * (1 + 1e-12));
      }
    }
}

}  // namespace
}  // namespace mw::train
