// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/collectives/collectives.h"
#include "core/model/catalogue.h"
#include "tests/mesh/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace mw::mesh {
namespace {

using testing::IsEmpty;

struct Case {
  model::Config config;
  Mesh mesh;
  Placement placement;
  std::vector<Collective> list(const StepShape& step) const { return collectives(config, mesh, placement, step); }
};

Case make(const std::string& id, const Mesh& mesh, const ShardingRules& rules = {},
          ShardingUse use = ShardingUse::training, int from_layer = 0) {
  Case c{.config = model::catalogue_config(id), .mesh = mesh, .placement = {}};
  const model::TensorInventory inventory(c.config);
  std::vector<AdapterShape> adapters;
  for (const model::LoraTarget& t : inventory.lora_targets())
    if (t.layer >= from_layer) adapters.push_back({t.role, t.layer, 16});
  c.placement = place(inventory, mesh, rules, adapters, use);
  return c;
}

template <class Want>
std::vector<Collective> those(const std::vector<Collective>& list, const Want& want) {
  std::vector<Collective> out;
  std::copy_if(list.begin(), list.end(), std::back_inserter(out), want);
  return out;
}

auto because(Cause cause) {
  return [cause](const Collective& c) { return c.cause == cause; };
}

TEST(Collectives, OneDeviceHasNone) {
  EXPECT_THAT(make("gemma4-31b", two(1, 1)).list({.rows = 4, .tokens = 128}), IsEmpty());
}

TEST(Collectives, TensorParallelTrainingSumsAfterEachBlockAndBefore) {
  const Case c = make("gemma4-31b", two(1, 4));
  const StepShape step{.rows = 2, .tokens = 3072, .accumulation = 3};
  const auto list = c.list(step);
  const auto sums = those(list, [](const Collective& x) { return x.cause == Cause::partial_sums && x.layer == 7; });
  ASSERT_EQ(sums.size(), 6u);  // attention and MLP: forward, again in the backward, backward
  for (const Collective& x : sums) {
    EXPECT_EQ(x.kind, CollectiveKind::all_reduce);
    EXPECT_EQ(x.axis, "tp");
    EXPECT_EQ(x.full, Bytes(2LL * 3072 * 5376 * 2));  // the 66 MB of the design
    EXPECT_EQ(x.moved, Bytes(2LL * 3072 * 5376 * 2 * 3 / 4 * 2));
    EXPECT_EQ(x.calls, 3);
  }
  EXPECT_THAT(those(list, because(Cause::gather_shards)), IsEmpty());
  // The first attention passes nothing on: the embedding does not learn.
  EXPECT_EQ(those(list, [](const Collective& x) { return x.tensor == "layers.0.attention"; }).size(), 2u);
  // Lookup, two reductions of the softmax, the gradient of the last hidden states.
  EXPECT_EQ(those(list, [](const Collective& x) { return x.layer < 0 && x.cause != Cause::inefficient_spec; }).size(),
            4u);
  for (const Collective& x : those(list, because(Cause::gradients))) EXPECT_EQ(x.kind, CollectiveKind::all_reduce);
}

TEST(Collectives, SumsPartialAdapterGradients) {
  const Case c = make("gemma3-4b", two(2, 2));
  const auto sums = those(c.list({.rows = 2, .tokens = 64}), because(Cause::gradients));
  const auto kinds = [&](const std::string& name) {
    std::multiset<std::string> out;
    for (const Collective& x : sums)
      if (x.tensor == name) out.insert(to_string(x.kind) + " " + x.axis + " " + std::to_string(x.full.value));
    return out;
  };
  using Set = std::multiset<std::string>;
  // A of a column-parallel projection: stored over fsdp; each tp device has the part of its heads. gradient_bytes 2.
  EXPECT_EQ(kinds("layers.3.q_proj.lora_a"), (Set{"reduce-scatter fsdp 81920", "all-reduce tp 40960"}));
  EXPECT_EQ(kinds("layers.3.q_proj.lora_b"), (Set{"all-reduce fsdp 32768"}));
  EXPECT_EQ(kinds("layers.3.o_proj.lora_a"), (Set{"all-reduce fsdp 32768"}));
  EXPECT_EQ(kinds("layers.3.o_proj.lora_b"), (Set{"reduce-scatter fsdp 81920", "all-reduce tp 40960"}));
}

TEST(Collectives, SumsGradientsOfAReplicatedKvHead) {
  const auto sums = those(make("gemma3-1b", two(1, 2)).list({}), because(Cause::gradients));
  const auto has = [&](const std::string& name) {
    return std::any_of(sums.begin(), sums.end(),
                       [&](const Collective& x) { return x.tensor == name && x.axis == "tp"; });
  };
  EXPECT_TRUE(has("layers.3.k_proj.lora_b"));
  EXPECT_FALSE(has("layers.3.q_proj.lora_b"));
  EXPECT_TRUE(has("layers.3.q_proj.lora_a"));
}

// FSDP over two GPUs receives half of 62 GB of weights, about 31 GB, twice per micro-step.
TEST(Collectives, FsdpGathersEveryWeightTwice) {
  const Case c = make("gemma4-31b", two(2, 1), {.preset = Preset::fsdp});
  const auto list = c.list({.rows = 2, .tokens = 4096});
  const auto gathers = those(list, [](const Collective& x) {
    return x.cause == Cause::gather_shards && x.tensor.find("lora") == std::string::npos;
  });
  std::int64_t shards = 0;
  for (const PlacedTensor& p : c.placement.tensors)
    shards += p.elements() * (p.role == model::Role::final_norm ? 1 : 2);  // the loss's backward follows at once
  EXPECT_EQ(moved(gathers), Bytes(2 * shards));
  EXPECT_NEAR(static_cast<double>(moved(gathers).value), 2 * 30.7e9, 0.1e9);
  const auto layers = fuse_by_layer(gathers);
  EXPECT_EQ(layers.size(), 2u * 60 + 1);  // a call per layer and direction, and what stands beside the layers
  EXPECT_EQ(moved(layers), moved(gathers));
  EXPECT_THAT(those(list, because(Cause::partial_sums)), IsEmpty());
}

TEST(Collectives, FullTrainingScattersWhatItGathers) {
  const Case c = make("gemma3-1b", two(4, 1));
  const auto list = c.list({.work = StepKind::train_full, .rows = 4, .tokens = 128});
  std::int64_t scattered = 0, summed = 0;
  for (const Collective& x : those(list, because(Cause::gradients)))
    (x.kind == CollectiveKind::reduce_scatter ? scattered : summed) += x.full.value;
  std::int64_t split = 0, whole = 0;
  for (const PlacedTensor& p : c.placement.tensors) (p.shards > 1 ? split : whole) += p.total() * 2;
  EXPECT_EQ(scattered, split);
  EXPECT_EQ(summed, whole);
}

TEST(Collectives, SumsGradientsOncePerStepIfAsked) {
  const Case c = make("gemma3-1b", two(2, 1));
  StepShape step{.rows = 2, .tokens = 64, .accumulation = 4};
  for (const Collective& x : those(c.list(step), because(Cause::gradients))) {
    EXPECT_EQ(x.calls, 4);
    EXPECT_EQ(x.phase, Phase::backward);
  }
  step.gradient_sum = GradientSum::each_step;
  for (const Collective& x : those(c.list(step), because(Cause::gradients))) {
    EXPECT_EQ(x.calls, 1);
    EXPECT_EQ(x.phase, Phase::update);
  }
}

TEST(Collectives, SplitResidualMovesTheSameBytes) {
  const Case c = make("gemma4-31b", two(1, 4));
  StepShape step{.rows = 1, .tokens = 1024};
  const auto of_layer = [&](const std::vector<Collective>& list) {
    return moved(those(list, [](const Collective& x) { return x.cause == Cause::partial_sums && x.layer == 7; }));
  };
  const Bytes whole = of_layer(c.list(step));
  step.residual = ResidualLayout::split;
  const auto list = c.list(step);
  EXPECT_EQ(of_layer(list), whole);
  for (const Collective& x : those(list, because(Cause::partial_sums))) EXPECT_NE(x.kind, CollectiveKind::all_reduce);
  // Norm scales lie as the stream does; q and k norms do not.
  for (const Collective& x : those(list, because(Cause::inefficient_spec)))
    EXPECT_THAT(x.tensor, testing::HasSubstr("_norm"));
  EXPECT_THAT(those(list, [](const Collective& x) { return x.tensor == "layers.7.input_norm"; }), IsEmpty());
}

TEST(Collectives, DecodeSumsActivationsAndGathersLogits) {
  const Case c = make("gemma3-27b", two(2, 4), {}, ShardingUse::sampling);
  const auto list = c.list({.work = StepKind::decode, .rows = 64});
  for (const Collective& x : list) EXPECT_EQ(x.phase, Phase::forward);
  const auto sums = those(list, because(Cause::partial_sums));
  ASSERT_EQ(sums.size(), 2u * 62);
  EXPECT_EQ(sums[0].full, Bytes(32LL * 5376 * 2)) << "fsdp splits the rows";
  const auto logits = those(list, because(Cause::logits));
  ASSERT_EQ(logits.size(), 1u);
  EXPECT_EQ(logits[0].full, Bytes(32LL * 262208 * 4));
  EXPECT_THAT(those(list, because(Cause::gather_shards)), IsEmpty());
}

TEST(Collectives, InefficientSpecListsItsGathers) {
  ShardingRules rules;
  rules.overrides = {{"q_proj", parse_spec("(-, tp, -)")}};
  const auto list = make("gemma3-4b", two(1, 2), rules).list({.rows = 1, .tokens = 64});
  const auto clumsy =
      those(list, [](const Collective& x) { return x.cause == Cause::inefficient_spec && x.layer == 3; });
  std::multiset<std::string> names;
  for (const Collective& x : clumsy) names.insert(x.tensor + " " + to_string(x.phase));
  EXPECT_TRUE(names.contains("layers.3.q_proj forward") && names.contains("layers.3.q_proj backward"));
  EXPECT_TRUE(names.contains("layers.3.o_proj forward")) << "q is whole, so o is, too";
  EXPECT_FALSE(names.contains("layers.3.gate_proj forward"));
  EXPECT_THAT(those(list, [](const Collective& x) { return x.tensor == "layers.3.attention"; }), IsEmpty());
  EXPECT_FALSE(those(list, [](const Collective& x) { return x.tensor == "layers.3.mlp"; }).empty());
}

TEST(Collectives, RepeatedKvHeadsSumWithinTheirGroup) {
  const Case c = make("gemma4-31b", two(1, 8), {.preset = Preset::megatron});
  const auto sums = those(c.list({}), because(Cause::gradients));
  const auto of = [&](const std::string& name) {
    return those(sums, [&](const Collective& x) { return x.tensor == name; });
  };
  ASSERT_EQ(of("layers.5.k_proj.lora_b").size(), 1u);
  EXPECT_EQ(of("layers.5.k_proj.lora_b")[0].group, 2);
  EXPECT_THAT(of("layers.0.k_proj.lora_b"), IsEmpty());
}

TEST(Collectives, BackwardEndsAtTheFirstTrainableBlock) {
  const auto list = make("gemma3-4b", two(2, 2), {}, ShardingUse::training, 20).list({.rows = 2, .tokens = 64});
  for (const Collective& x : list) {
    EXPECT_TRUE(x.phase == Phase::forward || x.layer < 0 || x.layer >= 20) << x.tensor;
  }
  EXPECT_FALSE(those(list, [](const Collective& x) { return x.layer == 20 && x.phase == Phase::backward; }).empty());
}

// Without padding a device moves its own tokens; loss and logits only those that have one.
TEST(Collectives, MovesOnlyTheGivenTokens) {
  const Case c = make("gemma3-1b", two(1, 2), {.preset = Preset::megatron});
  const auto list = c.list({.rows = 2, .tokens = 64, .device_tokens = 100, .device_logits = 30});
  for (const Collective& x : list) {
    if (x.layer < 0 || x.cause != Cause::partial_sums) continue;
    EXPECT_EQ(x.full, Bytes(100LL * 1152 * 2));
  }
  std::multiset<std::int64_t> head;
  for (const Collective& x : those(list, [](const Collective& x) { return x.tensor == "logits"; }))
    head.insert(x.full.value);
  EXPECT_EQ(head, (std::multiset<std::int64_t>{30 * 4, 30 * 8, 30 * 1152 * 2}));
}

// Whole routers with experts in parts: each device knows of its columns what an expert's share should be.
TEST(Collectives, ShardedExpertsSumTheRouterGradient) {
  const Case c = make("gemma4-26b-a4b", two(1, 4), {.preset = Preset::megatron});
  const auto list = c.list({.work = StepKind::train_full, .rows = 1, .tokens = 64});
  const auto shares = those(list, [](const Collective& x) { return x.tensor == "layers.5.router"; });
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].full, Bytes(64LL * c.config.experts_per_token * 4));
  EXPECT_EQ(shares[0].phase, Phase::backward);
  EXPECT_THAT(those(list, [](const Collective& x) { return x.tensor.find("router_") != std::string::npos; }),
              IsEmpty());
}

TEST(Collectives, GatheredLogitsCountTheirPadding) {
  const Case c = make("gemma3-270m", {{{"tp", 3}, {"fsdp", 2}}}, {.preset = Preset::megatron}, ShardingUse::sampling);
  const auto logits = those(c.list({.work = StepKind::decode, .rows = 4}), because(Cause::logits));
  ASSERT_EQ(logits.size(), 1u);
  EXPECT_EQ(logits[0].full, Bytes(2LL * (262144 + 2) * 4));
}

// Whatever the mesh, preset and model: bytes follow from the shard, groups from the mesh.
TEST(Collectives, BytesAreConsistentOnRandomMeshes) {
  std::mt19937 random(5);
  const std::vector<std::string> models{"gemma3-270m", "gemma4-26b-a4b", "gemma4-e2b", "gemma2-2b", "llama3.1-8b"};
  for (int round = 0; round < 20; ++round) {
    const Mesh mesh{
        {{"data", 1 + static_cast<int>(random() % 2)}, {"fsdp", 1 << (random() % 3)}, {"tp", 1 << (random() % 3)}}};
    const Case c = make(models[random() % models.size()], mesh, {.preset = static_cast<Preset>(random() % 4)});
    const StepShape step{.work = static_cast<StepKind>(random() % 3), .rows = 4, .tokens = 32};
    for (const Collective& x : c.list(step)) {
      ASSERT_GT(x.group, 1);
      ASSERT_EQ(mesh.size(x.axis) % x.group, 0);
      ASSERT_GT(x.moved.value, 0) << x.tensor;
      ASSERT_LT(x.moved.value, 2 * x.full.value);
      ASSERT_EQ(x.moved.value,
                (x.full.value - x.full.value / x.group) * (x.kind == CollectiveKind::all_reduce ? 2 : 1));
      if (step.work == StepKind::forward) {
        ASSERT_EQ(x.phase, Phase::forward);
      }
    }
    // A weight gathered over several axes ends whole along all but its working ones.
    std::map<std::string, std::int64_t> largest;
    for (const Collective& x : those(c.list(step), because(Cause::gather_shards)))
      largest[x.tensor] = std::max(largest[x.tensor], x.full.value);
    for (const PlacedTensor& p : c.placement.tensors)
      if (largest.contains(p.name)) {
        ASSERT_EQ(largest[p.name] % (p.elements() * 2), 0);
        ASSERT_LE(largest[p.name], p.elements() * 2 * mesh.devices());
      }
  }
}

}  // namespace
}  // namespace mw::mesh
