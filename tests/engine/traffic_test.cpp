// SPDX-License-Identifier: GPL-3.0-or-later
// What the devices of a mesh are counted to have read of each other is what was planned, entry by entry; and the count
// is of the copies: one too many, one too few or another plan, and it is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/cluster_faults.h"
#include "tests/engine/mesh_model.h"

namespace mw::engine::test {
namespace {

class MeshTraffic : public ::testing::TestWithParam<std::string> {
 protected:
  const model::Config config = divisible(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Cluster, MeshTraffic, ::testing::ValuesIn(families()), family_name);

std::unique_ptr<Cluster> after_a_step(const model::Config& config, const Training& t) {
  auto cluster = cluster_for(config, t);
  Course course;
  step(*cluster, t, 1, course);
  return cluster;
}

std::int64_t entries = 0, compared_bytes = 0;  // of all tests, for who runs them

// The cluster after that step.
std::unique_ptr<Cluster> expect_planned(const model::Config& config, const Training& t) {
  auto cluster = after_a_step(config, t);
  for (int device = 0; device < cluster->devices(); ++device) {
    const Moves plan = planned(*cluster, t, device);
    EXPECT_FALSE(plan.empty());
    EXPECT_EQ(counted(*cluster, device), plan) << "device " << device;
    entries += static_cast<std::int64_t>(plan.size());
    for (const CollectiveTraffic& one : cluster->traffic(device))
      compared_bytes += one.what.moved.value * one.what.calls;
  }
  return cluster;
}

class Figures : public ::testing::Environment {
  void TearDown() override {
    if (entries > 0)
      std::printf("planned and counted: %lld entries, %lld bytes\n", static_cast<long long>(entries),
                  static_cast<long long>(compared_bytes));
  }
};
const auto* const kFigures = ::testing::AddGlobalTestEnvironment(new Figures);

// Each axis in turn, inner first, or each piece from where it is: as long as pieces are equal, the bytes are.
TEST_P(MeshTraffic, OfEqualPiecesIsThatOfStagedCollectives) {
  for (const Kind& kind : kKinds)
    for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16})
      for (const mesh::Mesh& mesh : {grid(2, 1), grid(4, 1), grid(2, 1, 2), grid(1, 2), grid(2, 2), grid(1, 4),
                                     grid(4, 2), grid(2, 4), grid(2, 2, 2)}) {
        const Training t{.mesh = mesh,
                         .rules = tunix_rules(config),
                         .method = kind.method,
                         .dora = kind.dora,
                         .type = type,
                         .remat = model::Remat::layer,
                         .accumulation = 2};
        SCOPED_TRACE(mesh::to_text(mesh) + ", " + kind.name);
        const auto cluster = expect_planned(config, t);
        for (int device = 0; device < cluster->devices(); ++device)
          EXPECT_EQ(counted(*cluster, device), staged(*cluster, t));
        cluster->clear_traffic();
        EXPECT_TRUE(cluster->traffic(0).empty());
      }
}

// PyTorch's FSDP2: rows as they come, the last pieces smaller or empty. No padding is read.
TEST_P(MeshTraffic, OfUnevenPiecesIsOfTheirElements) {
  const model::Config uneven = as_family(tiny_config(), GetParam());
  for (const Kind& kind : kKinds)
    for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16})
      for (const mesh::Mesh& mesh : {grid(3, 1), grid(5, 1), grid(3, 1, 2)}) {
        SCOPED_TRACE(mesh::to_text(mesh) + ", " + kind.name);
        const Training t{.mesh = mesh,
                         .rules = {.preset = mesh::Preset::fsdp},
                         .method = kind.method,
                         .dora = kind.dora,
                         .type = type,
                         .rows = 7};
        const auto cluster = expect_planned(uneven, t);
        EXPECT_NE(counted(*cluster, 0), counted(*cluster, mesh.devices() - 1)) << "all pieces are equal";
      }
}

// vLLM's: KV heads repeat where tp is larger, the vocabulary is padded; with a second axis that splits the rows.
TEST_P(MeshTraffic, OfRepeatedHeadsIsAmongThoseThatRepeat) {
  model::Config c = tiny_config();
  for (model::Layer& l : c.layers) l.heads = 8;
  c = as_family(c, GetParam());
  if (c.experts > 0) c.expert_dim = 20;
  for (const Kind& kind : kKinds)
    for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16})
      for (const mesh::Mesh& mesh : {grid(1, 2), grid(1, 4), grid(2, 4)}) {
        SCOPED_TRACE(mesh::to_text(mesh) + ", " + kind.name);
        expect_planned(c, {.mesh = mesh,
                           .rules = {.preset = mesh::Preset::megatron},
                           .method = kind.method,
                           .dora = kind.dora,
                           .type = type});
      }
}

TEST_P(MeshTraffic, OfClumsySpecsIsCountedAsSuch) {
  for (const Kind& kind : kKinds)
    for (const std::vector<mesh::ShardingRule>& clumsy : clumsy_specs()) {
      Training t{.rules = tunix_rules(config), .method = kind.method, .dora = kind.dora};
      t.rules.overrides.insert(t.rules.overrides.begin(), clumsy.begin(), clumsy.end());
      for (const mesh::Mesh& mesh : {grid(2, 2), grid(2, 2, 2), grid(2, 4)}) {
        SCOPED_TRACE(mesh::to_text(mesh) + ", " + kind.name);
        t.mesh = mesh;
        const auto cluster = expect_planned(config, t);
        std::int64_t bytes = 0;
        for (const CollectiveTraffic& traffic : cluster->traffic(1))
          if (traffic.what.cause == mesh::Cause::inefficient_spec)
            bytes += traffic.what.moved.value * traffic.what.calls;
        EXPECT_GT(bytes, 0);
      }
    }
}

// Rows of logits are gathered one by one: bytes of each tensor, in however many calls.
void record(Moves& bytes, mesh::Collective c) {
  const std::int64_t moved = c.moved.value * c.calls;
  c.moved = Bytes(0);
  bytes[text_of(c)] += moved;
}

TEST_P(MeshTraffic, OfSamplingIsThatOfItsForwards) {
  std::vector<std::vector<int>> prompts;
  for (int i = 0; i < 8; ++i) prompts.push_back({1 + i, 7, 3 * i + 2});
  Training t{.rules = tunix_rules(config)};
  for (const mesh::Mesh& mesh : {grid(2, 2), grid(1, 4), grid(2, 1, 2)}) {
    t.mesh = mesh;
    const auto cluster = cluster_for(config, t);
    cluster->generate_batch(prompts, {.max_new_tokens = 2});
    for (int device = 0; device < mesh.devices(); ++device) {
      const mesh::IndexInterval part = mesh::batch_rows(mesh::batch_slice(mesh, device), 8);
      const std::int64_t rows = part.end - part.begin;
      const std::vector<mesh::DeviceTokens> passes{{.tokens = 3 * rows, .loss_tokens = rows},
                                                   {.tokens = rows, .loss_tokens = rows}};
      Moves plan;
      const mesh::DeviceCollectives each(config, mesh, cluster->placement(), {.work = mesh::StepKind::decode});
      for (const mesh::Collective& c : each.of(device, passes)) record(plan, c);
      Moves found;
      for (const CollectiveTraffic& one : cluster->traffic(device)) record(found, one.what);
      EXPECT_EQ(found, plan) << mesh::to_text(mesh) << ", device " << device;
    }
  }
}

// --- What must not agree ---

// Counted and not planned like that, and the other way round.
std::vector<std::string> odd_entries(const Moves& found, const Moves& expected) {
  std::vector<std::string> odd;
  for (const auto& [here, there] : {std::pair(&found, &expected), {&expected, &found}})
    for (const auto& [what, calls] : *here)
      if (const auto at = there->find(what); at == there->end() || at->second != calls) odd.push_back(what);
  return odd;
}

TEST_P(MeshTraffic, APlanOfAnotherSpecDoesNotAgree) {
  const Training t{.mesh = grid(2, 2), .rules = tunix_rules(config), .method = model::TrainMethod::full};
  const auto cluster = after_a_step(config, t);
  Training other = t;
  other.rules.overrides.insert(other.rules.overrides.begin(), {"layers.1.up_proj$", mesh::parse_spec("(-, tp)")});
  const mesh::Placement wrong =
      mesh::place(cluster->inventory(), t.mesh, mesh::engine_rules(other.rules), {}, mesh::ShardingUse::training);
  for (int device = 0; device < 4; ++device) {
    const std::vector<std::string> odd = odd_entries(counted(*cluster, device), planned(*cluster, t, device, wrong));
    EXPECT_THAT(odd, ::testing::Not(::testing::IsEmpty()));
    EXPECT_THAT(odd, ::testing::Each(::testing::HasSubstr("layers.1.up_proj")));
  }
}

std::vector<std::string> odd_after(const model::Config& config, const Training& t, int device,
                                   const std::function<void(Cluster&)>& fault) {
  const auto cluster = cluster_for(config, t);
  fault(*cluster);
  Course course;
  step(*cluster, t, 1, course);
  for (int other = 0; other < cluster->devices(); ++other)
    if (other != device) {
      EXPECT_EQ(counted(*cluster, other), planned(*cluster, t, other)) << "device " << other << " did nothing wrong";
    }
  return odd_entries(counted(*cluster, device), planned(*cluster, t, device));
}

TEST_P(MeshTraffic, ACopyTooManyOrTooFewIsSeen) {
  using ::testing::Each;
  using ::testing::HasSubstr;
  using ::testing::SizeIs;
  const Training t{.mesh = grid(2, 2), .rules = tunix_rules(config), .method = model::TrainMethod::full};
  const auto gather = Each(HasSubstr("all-gather over fsdp (2) of layers.2.down_proj"));
  const auto twice =
      odd_after(config, t, 1, [](Cluster& c) { ClusterFaults::read_weight_twice(c, "layers.2.down_proj", 1); });
  EXPECT_THAT(twice, ::testing::AllOf(SizeIs(4), gather)) << "forward and backward, planned and counted";
  const auto never =
      odd_after(config, t, 1, [](Cluster& c) { ClusterFaults::leave_read_out(c, "layers.2.down_proj", 1); });
  EXPECT_THAT(never, ::testing::AllOf(SizeIs(2), gather)) << "planned only";
  const auto sum =
      odd_after(config, t, 3, [](Cluster& c) { ClusterFaults::leave_sum_out(c, "layers.2.input_norm", 3); });
  EXPECT_THAT(sum, Each(HasSubstr("fsdp (2) of layers.2.input_norm")));
  EXPECT_FALSE(sum.empty());
}

}  // namespace
}  // namespace mw::engine::test
