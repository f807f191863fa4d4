// SPDX-License-Identifier: Apache-2.0
// Values that option structs compute of themselves, and what the stacks offer of them.
#include <gtest/gtest.h>

#include "core/options/data.h"
#include "core/options/load.h"
#include "core/options/mesh.h"
#include "core/options/stack_options.h"
#include "core/options/training.h"

namespace mw::options {
namespace {

TEST(OptionsTest, MeshCountsDevicesAndTakesImpossibleSizesAsOne) {
  const mesh::Mesh mesh{{{"fsdp", 4}, {"tp", 0}, {"data", 2}}};
  EXPECT_EQ(mesh.devices(), 8);
  EXPECT_EQ(mesh.size("fsdp"), 4);
  EXPECT_EQ(mesh.size("tp"), 1);
  EXPECT_EQ(mesh.size("pp"), 1);
  EXPECT_TRUE(mesh.has("tp"));
  EXPECT_FALSE(mesh.has("pp"));
  EXPECT_EQ(mesh::Mesh{}.devices(), 1);
}

TEST(OptionsTest, MeshOfTooManyDevicesDoesNotOverflow) {
  const int many = 1 << 20;
  EXPECT_EQ((mesh::Mesh{{{"a", many}, {"b", many}, {"c", many}, {"d", many}}}.devices()), 1 << 30);
}

TEST(OptionsTest, FileOfHeldOutRowsReplacesTheFraction) {
  DataRows rows;
  EXPECT_FALSE(rows.holds_rows_out());
  rows.eval_fraction = 0.25;
  EXPECT_TRUE(rows.holds_rows_out());
  EXPECT_EQ(rows.random_share_held_out(), 0.25);
  rows.eval_path = "held_out.jsonl";
  EXPECT_TRUE(rows.holds_rows_out());
  EXPECT_EQ(rows.random_share_held_out(), 0);
}

TEST(OptionsTest, RunDecidesByEvaluationOnceSomethingDependsOnIt) {
  Training training;
  EXPECT_FALSE(training.decides_by_evaluation());
  training.patience = 2;
  EXPECT_TRUE(training.decides_by_evaluation());
  training = {};
  training.keep_best = KeepBest::answers;
  EXPECT_TRUE(training.decides_by_evaluation());
}

TEST(OptionsTest, OnlyServersHaveTypesOfServedWeightsAndOnlyTrainersRemat) {
  for (size_t i = 0; i < kEnumNames<model::Stack>.size(); ++i) {
    const auto stack = static_cast<model::Stack>(i);
    const StackOptions options = stack_options(stack);
    EXPECT_EQ(!options.weights.empty(), model::serves(stack)) << to_string(stack);
    EXPECT_FALSE(model::serves(stack) && (options.saved_by_name || options.offload || options.compile_choice))
        << to_string(stack);
    EXPECT_GT(server_defaults(stack).block_size, 0) << to_string(stack);
  }
}

TEST(OptionsTest, SloIsSetByAnyLimit) {
  EXPECT_FALSE(Slo{}.any());
  EXPECT_TRUE((Slo{.tpot_ms = 1}.any()));
}

}  // namespace
}  // namespace mw::options
