// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/lengths.h"

#include <gtest/gtest.h>

namespace mw::plan {
namespace {

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
