// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/size_constraints.h"
#include "core/model/catalogue.h"

#include <gmock/gmock.h>

namespace mw::mesh {
namespace {

using testing::ElementsAre;

std::vector<int> legal_tp(const char* id, Preset preset = Preset::tunix, ShardingUse use = ShardingUse::training) {
  const model::TensorInventory inventory(model::catalogue_config(id));
  const auto all = size_constraints(inventory, {}, {.preset = preset}, {}, use);
  std::vector<int> sizes;
  for (int tp = 1; tp <= 32; tp *= 2)
    if (is_legal(all, {{{"fsdp", 1}, {"tp", tp}}})) sizes.push_back(tp);
  return sizes;
}

// Sizes that Tunix's annotations divide.
TEST(SizeConstraints, TpSizesOfEveryModelMatchTunix) {
  EXPECT_THAT(legal_tp("gemma2-2b"), ElementsAre(1, 2, 4));
  EXPECT_THAT(legal_tp("gemma2-9b"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(legal_tp("gemma3-270m"), ElementsAre(1, 2, 4));
  EXPECT_THAT(legal_tp("gemma3-1b"), ElementsAre(1, 2, 4));
  EXPECT_THAT(legal_tp("gemma3-4b"), ElementsAre(1, 2, 4));
  EXPECT_THAT(legal_tp("gemma3-12b"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(legal_tp("gemma3-27b"), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(legal_tp("gemma4-e2b"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(legal_tp("gemma4-e4b"), ElementsAre(1, 2));
  EXPECT_THAT(legal_tp("gemma4-12b"), ElementsAre(1));
  EXPECT_THAT(legal_tp("gemma4-26b-a4b"), ElementsAre(1, 2));
  EXPECT_THAT(legal_tp("gemma4-31b"), ElementsAre(1, 2, 4));
}

TEST(SizeConstraints, FsdpMustDivideTheWidth) {
  for (const std::string id : {"gemma3-270m", "gemma3-1b", "gemma4-26b-a4b", "gemma4-31b", "gemma2-9b"}) {
    const auto all =
        size_constraints(model::TensorInventory(model::catalogue_config(id)), {}, {}, {}, ShardingUse::training);
    EXPECT_TRUE(is_legal(all, {{{"fsdp", 128}}})) << id;
    const bool stops = id == "gemma3-270m" || id == "gemma3-1b" || id == "gemma4-26b-a4b";
    EXPECT_EQ(is_legal(all, {{{"fsdp", 256}}}), !stops) << id;
  }
}

// vLLM repeats KV heads: tp may be a multiple of them.
TEST(SizeConstraints, ServingRepeatsKeyValueHeads) {
  EXPECT_THAT(legal_tp("gemma4-31b", Preset::megatron, ShardingUse::sampling), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(legal_tp("gemma3-1b", Preset::megatron, ShardingUse::sampling), ElementsAre(1, 2, 4));
}

TEST(SizeConstraints, FactorisationsAreCompleteAndUnique) {
  const auto all = factorisations({"fsdp", "tp", "data"}, 12);
  EXPECT_EQ(all.size(), 18U);  // (p^2: 6) x (3: 3)
  for (const Mesh& m : all) EXPECT_EQ(m.devices(), 12);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i] == all[j]);
}

TEST(SizeConstraints, NearestLegalMeshChangesLeast) {
  const auto all = size_constraints(model::TensorInventory(model::catalogue_config("gemma4-31b")), {}, {}, {},
                                    ShardingUse::training);
  EXPECT_EQ(nearest_legal(all, {{{"fsdp", 1}, {"tp", 8}}}, 8, 2), (Mesh{{{"fsdp", 2}, {"tp", 4}}}));
  EXPECT_EQ(nearest_legal(all, {{{"fsdp", 1}, {"tp", 8}}}, 4, 1), (Mesh{{{"fsdp", 1}, {"tp", 4}}}));
  EXPECT_EQ(nearest_legal(all, {{{"tp", 16}}}, 16, 4), (Mesh{{{"fsdp", 4}, {"tp", 4}}}));
}

}  // namespace
}  // namespace mw::mesh
