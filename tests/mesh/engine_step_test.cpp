// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/collectives/engine_step.h"
#include "core/model/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mw::mesh {
namespace {

const Mesh kMesh{{{"fsdp", 2}, {"tp", 2}}};

struct Sharded {
  model::Config config = model::catalogue_config("gemma3-1b");
  Placement placement;
  Sharded() {
    const model::TensorInventory inventory(config);
    std::vector<AdapterShape> adapters;
    for (const model::LoraTarget& t : inventory.lora_targets()) adapters.push_back({t.role, t.layer, 16});
    placement = place(inventory, kMesh, engine_rules({}), adapters, ShardingUse::training);
  }
  std::vector<Collective> of(const std::vector<DeviceTokens>& micro) const {
    return DeviceCollectives(config, kMesh, placement, {}).of(0, micro);
  }
};

Bytes full(const std::vector<Collective>& list, Cause cause, const std::string& tensor) {
  Bytes sum;
  for (const Collective& c : list)
    if (c.cause == cause && c.tensor == tensor) sum += c.full * c.calls;
  return sum;
}

TEST(EngineStep, ActivationsScaleWithTokensAndLossWithTargets) {
  const Sharded c;
  const auto list = c.of({{.tokens = 70, .loss_tokens = 12}});
  const std::int64_t d = c.config.dim;
  EXPECT_EQ(full(list, Cause::partial_sums, "layers.3.mlp"), Bytes(2 * 70 * d * 4));  // forward and backward
  EXPECT_EQ(full(list, Cause::embedding_rows, "embedding"), Bytes(70 * d * 4));
  EXPECT_EQ(full(list, Cause::softmax, "logits"), Bytes(12 * 12));
  EXPECT_EQ(full(list, Cause::partial_sums, "logits"), Bytes(12 * d * 4));
}

TEST(EngineStep, EachLossChunkHasItsOwnReductions) {
  const auto list = Sharded().of({{.tokens = 70, .loss_tokens = 50, .loss_rows = 16}});
  std::vector<std::pair<std::int64_t, std::int64_t>> calls;  // bytes, how often
  for (const Collective& x : list)
    if (x.cause == Cause::softmax) calls.emplace_back(x.full.value, x.calls);
  EXPECT_THAT(calls,
              testing::UnorderedElementsAre(std::pair{64, 3}, std::pair{8, 1}, std::pair{128, 3}, std::pair{16, 1}));
}

TEST(EngineStep, MicroBatchesOfDifferentSizesAreSeparateCalls) {
  const Sharded c;
  const DeviceTokens a{.tokens = 70, .loss_tokens = 12}, b{.tokens = 64, .loss_tokens = 12};
  const auto list = c.of({a, b, a});
  Bytes each;
  for (const DeviceTokens& own : {a, b, a}) each += moved(c.of({own}));
  EXPECT_EQ(moved(list), each);
  for (const Collective& x : list) {
    if (x.cause == Cause::gather_shards || x.cause == Cause::gradients || x.cause == Cause::softmax) {
      EXPECT_EQ(x.calls % 3, 0) << x.tensor;
    }
    if (x.tensor == "layers.3.mlp") {
      EXPECT_TRUE(x.calls == 1 || x.calls == 2 || x.calls == 4);
    }
  }
  // A device without rows takes part in gathers and in the sums of gradients.
  for (const Collective& x : c.of({{}}))
    EXPECT_TRUE(x.cause != Cause::partial_sums && x.cause != Cause::softmax && x.cause != Cause::embedding_rows);
}

TEST(EngineStep, SplitsRowsIntoEqualSlicesRoundedUp) {
  const Mesh mesh{{{"data", 2}, {"tp", 2}, {"fsdp", 2}}};
  EXPECT_EQ(batch_slice(mesh, 0), (BatchSlice{0, 4}));
  EXPECT_EQ(batch_slice(mesh, 3), (BatchSlice{1, 4}));  // data 0, tp 1, fsdp 1
  EXPECT_EQ(batch_slice(mesh, 6), (BatchSlice{2, 4}));
  EXPECT_EQ(batch_rows({0, 4}, 6), (IndexInterval{0, 2}));
  EXPECT_EQ(batch_rows({2, 4}, 6), (IndexInterval{4, 6}));
  EXPECT_EQ(batch_rows({3, 4}, 6), (IndexInterval{6, 6}));
  EXPECT_EQ(batch_rows({1, 4}, 1), (IndexInterval{1, 1}));
}

TEST(EngineStep, KAndVHaveSeparateA) {
  int a = 0;
  for (const PlacedTensor& p : Sharded().placement.adapters)
    if (p.layer == 0 && p.role == model::Role::lora_a) ++a;
  EXPECT_EQ(a, 7);
}

}  // namespace
}  // namespace mw::mesh
