// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/optimizer_steps.h"

#include <gtest/gtest.h>

#include "core/base/rng.h"

namespace mw {
namespace {

TEST(StepsOfEpochs, DividesRowsByStepRowsRoundingDown) {
  EXPECT_EQ(steps_of_epochs(52002, 1, {.batch = 8}), 6500);
  EXPECT_EQ(steps_of_epochs(1970, 1, {.batch = 8, .accumulation = 2}), 123);
  EXPECT_EQ(steps_of_epochs(1970, 2, {.batch = 8, .accumulation = 2}), 246);
  EXPECT_EQ(steps_of_epochs(1970, 2, {.batch = 2, .accumulation = 2, .data_shards = 4}), 246);
  Rng rng{7};
  for (int i = 0; i < 1000; ++i) {
    const auto rows = static_cast<std::int64_t>(rng.below(100000)), epochs = static_cast<std::int64_t>(rng.below(20));
    const StepRows step{.batch = 1 + static_cast<std::int64_t>(rng.below(64)),
                        .accumulation = 1 + static_cast<std::int64_t>(rng.below(8)),
                        .data_shards = 1 + static_cast<std::int64_t>(rng.below(8))};
    const std::int64_t each = step.batch * step.accumulation * step.data_shards;
    EXPECT_EQ(steps_of_epochs(static_cast<double>(rows), static_cast<double>(epochs), step),
              std::max<std::int64_t>(1, rows * epochs / each));
  }
}

TEST(StepsOfEpochs, IsAtLeastOneAndIgnoresRoundingErrors) {
  EXPECT_EQ(steps_of_epochs(0, 3, {}), 1);
  EXPECT_EQ(steps_of_epochs(7, 0.1, {.batch = 8}), 1);
  EXPECT_EQ(steps_of_epochs(100, 0.29, {}), 29);  // 28.999999999999996 in double precision
  EXPECT_EQ(steps_of_epochs(1e300, 1e6, {}), 1'000'000'000'000'000);
}

}  // namespace
}  // namespace mw
