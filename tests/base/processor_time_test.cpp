// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/processor_time.h"

#include <gtest/gtest.h>

namespace mw {
namespace {

TEST(ProcessorTime, OthersCountWhereNoProcessorIsIdle) {
  const ProcessorTime before{.own = 1, .others = 100, .idle = 50};
  EXPECT_EQ(share_of_others(before, {.own = 11, .others = 100, .idle = 50.5}), 0);
  EXPECT_EQ(share_of_others(before, {.own = 11, .others = 110, .idle = 51}), 1);
  EXPECT_EQ(share_of_others(before, {.own = 11, .others = 110, .idle = 60}), 0) << "processors were left";
  EXPECT_EQ(share_of_others(before, {.own = 11, .others = 99.9, .idle = 50}), 0) << "clocks differ";
  EXPECT_EQ(share_of_others({}, {}), 0);
}

TEST(ProcessorTime, TellsOfThisProcess) {
  const ProcessorTime before = processor_time();
  volatile double sum = 0;
  for (int i = 0; i < 2'000'000; ++i) sum = sum + i;
  EXPECT_GT(processor_time().own, before.own);
}

}  // namespace
}  // namespace mw
