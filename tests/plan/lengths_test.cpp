// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/lengths.h"

#include <gtest/gtest.h>

namespace mw::plan {
namespace {

// Two rows of a mean of 3,232 in rows of up to 32,768 are no longer than that: the longer one is expected at half more.
TEST(RowStatistics, ExpectsTheLongestRowFromTheMean) {
  const Lengths l{.max_len = 32768, .mean = 3232, .rows = RowLayout::ragged};
  EXPECT_DOUBLE_EQ(row_statistics(l, 1).computed, 3232);
  EXPECT_NEAR(row_statistics(l, 2).computed, 1.5 * 3232, 0.01 * 3232);  // of an exponential distribution
  EXPECT_NEAR(row_statistics(l, 4).computed, (1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4) * 3232, 0.02 * 3232);
  const Lengths even{.max_len = 1000, .mean = 500, .rows = RowLayout::ragged};  // a uniform distribution
  EXPECT_NEAR(row_statistics(even, 3).computed, 750, 1);
  EXPECT_NEAR(row_statistics(even, 1e6).computed, 1000, 1);
  EXPECT_DOUBLE_EQ(row_statistics({.max_len = 1000, .rows = RowLayout::ragged}, 2).computed, 1000);
}

TEST(RowStatistics, RaggedDevicesWaitForTheLongestRow) {
  const Lengths l{.histogram = {{100, 1}, {300, 1}}, .max_len = 400, .rows = RowLayout::ragged};
  EXPECT_DOUBLE_EQ(row_statistics(l, 1, 2).computed, 200);
  EXPECT_DOUBLE_EQ(row_statistics(l, 1, 2).slowest, row_statistics(l, 2).computed);
  EXPECT_DOUBLE_EQ(row_statistics({.max_len = 512}, 2, 4).slowest, 512);
}

TEST(PackCount, PacksLongestFirst) {
  EXPECT_EQ(pack_count({{50, 4}}, 100), 2);
  EXPECT_EQ(pack_count({{30, 2}, {70, 2}}, 100), 2);
  EXPECT_EQ(pack_count({{40, 3}, {60, 1}}, 100), 2);
  EXPECT_EQ(pack_count({{40, 5}}, 100), 3);
  EXPECT_EQ(pack_count({{101, 7}, {100, 1}}, 100), 1);  // what is too long is not there
  EXPECT_EQ(pack_count({}, 100), 0);
}

TEST(RowStatistics, PaddedRowsComputeMaxLen) {
  Lengths l{.histogram = {{100, 3}, {300, 1}, {900, 5}}, .max_len = 400, .rows = RowLayout::padded};
  const RowStatistics f = row_statistics(l, 1);
  EXPECT_EQ(f.rows, 4);
  EXPECT_DOUBLE_EQ(f.mean, 150);
  EXPECT_DOUBLE_EQ(f.computed, 400);
  EXPECT_DOUBLE_EQ(f.real, 150);
}

TEST(RowStatistics, RaggedRowsComputeTheLongestOfTheirMicroBatch) {
  Lengths l{.histogram = {{100, 1}, {300, 1}}, .max_len = 400, .rows = RowLayout::ragged};
  EXPECT_DOUBLE_EQ(row_statistics(l, 1).computed, 200);
  EXPECT_DOUBLE_EQ(row_statistics(l, 2).computed, 0.25 * 100 + 0.75 * 300);
}

// The engine computes real tokens: neither the longest row nor the layout changes how many, only max_len of packed
// rows.
TEST(RowStatistics, WithoutComputedPaddingOnlyRealTokensCount) {
  Lengths l{.histogram = {{100, 3}, {300, 1}}, .max_len = 400, .computes_padding = false};
  for (const int max_len : {300, 400, 4000})
    for (const RowLayout layout : {RowLayout::padded, RowLayout::ragged}) {
      l.max_len = max_len, l.rows = layout;
      const RowStatistics one = row_statistics(l, 4), two = row_statistics(l, 1, 2), four = row_statistics(l, 4, 2);
      EXPECT_DOUBLE_EQ(one.computed, 150);
      EXPECT_DOUBLE_EQ(one.slowest, 150);
      EXPECT_DOUBLE_EQ(one.attended, (3 * 100.0 * 100 + 300.0 * 300) / 600);
      EXPECT_DOUBLE_EQ(two.slowest, 300 - 200 * 0.75 * 0.75);  // the longer of two rows
      EXPECT_GT(four.slowest, 150);
      EXPECT_LT(four.slowest, two.slowest);
    }
  l.rows = RowLayout::packed, l.max_len = 400;
  EXPECT_DOUBLE_EQ(row_statistics(l, 1, 8).slowest, row_statistics(l, 1).real);
  const Lengths mean{.max_len = 1000, .mean = 500, .computes_padding = false};
  EXPECT_NEAR(row_statistics(mean, 1).attended, 1000 * 2 / 3.0, 1);  // of a uniform distribution
}

TEST(RowStatistics, PackedRowsAreFewerAndFuller) {
  Lengths l{.histogram = {{100, 8}}, .max_len = 400, .packed_rows = 2, .rows = RowLayout::packed};
  const RowStatistics f = row_statistics(l, 1);
  EXPECT_EQ(f.batches_rows, 2);
  EXPECT_DOUBLE_EQ(f.real, 400);
}

TEST(RowStatistics, UsesTheMeanWithoutAHistogram) {
  EXPECT_DOUBLE_EQ(row_statistics({.max_len = 512}, 4).real, 512);
  EXPECT_DOUBLE_EQ(row_statistics({.max_len = 512, .mean = 128}, 4).real, 128);
}

}  // namespace
}  // namespace mw::plan
