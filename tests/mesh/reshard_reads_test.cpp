// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/collectives/reshard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/mesh/collectives/engine_step.h"
#include "core/model/catalogue.h"
#include "tests/mesh/targets.h"

namespace mw::mesh {
namespace {

using testing::ElementsAre;

struct Read {
  model::Config config;
  Mesh mesh;
  Placement placement;
  ComputeSharding form;
  ReshardPlans plans;

  Read(const std::string& id, const Mesh& on, const ShardingRules& rules)
      : config(model::catalogue_config(id)),
        mesh(on),
        placement(placed(config, on, rules)),
        form(on, placement, {}),
        plans(config, placement, mesh) {}
  LocalConfig local(int device) const { return local_config(config, form, placement, mesh, device); }
  std::vector<Stage> gather(const PlacedTensor& p, int device) const { return plans.of(p).gather_reads(device); }
  std::vector<Stage> sum(const PlacedTensor& p, int device) const { return plans.of(p).sum_reads(device); }
  const PlacedTensor& tensor(const std::string& name) const {
    for (const auto* list : {&placement.tensors, &placement.adapters})
      for (const PlacedTensor& p : *list)
        if (p.name == name) return p;
    throw std::invalid_argument(name);
  }

 private:
  static Placement placed(const model::Config& config, const Mesh& mesh, const ShardingRules& rules) {
    const model::TensorInventory inventory(config);
    std::vector<AdapterShape> adapters;
    for (const model::LoraTarget& t : inventory.lora_targets()) adapters.push_back({t.role, t.layer, 16});
    return place(inventory, mesh, engine_rules(rules), adapters, ShardingUse::training);
  }
};

std::vector<std::int64_t> moved(const std::vector<Stage>& stages) {
  std::vector<std::int64_t> all;
  for (const Stage& s : stages) all.push_back(s.moved);
  return all;
}
std::int64_t sum(const std::vector<Stage>& stages) {
  std::int64_t all = 0;
  for (const Stage& s : stages) all += s.moved;
  return all;
}

std::int64_t size(const std::vector<IndexInterval>& ranges) {
  std::int64_t n = 1;
  for (const IndexInterval& r : ranges) n *= r.end - r.begin;
  return n;
}

// Whatever the mesh and the preset: all that a device computes with and does not store, once.
TEST(ReshardReads, GathersOnlyMissingElements) {
  std::mt19937 random(3);
  const std::vector<std::string> models{"gemma3-270m", "gemma4-26b-a4b", "gemma4-e2b", "gemma2-2b"};
  std::int64_t all = 0;
  for (int round = 0; round < 12; ++round) {
    const Mesh mesh{
        {{"data", 1 + static_cast<int>(random() % 2)}, {"fsdp", 1 + static_cast<int>(random() % 3)}, {"tp", 2}}};
    const Preset preset = mesh.size("fsdp") == 3 ? Preset::fsdp : static_cast<Preset>(random() % 4);
    const Read c(models[random() % models.size()], mesh, {.preset = preset});
    if (!c.placement.problems.empty()) continue;
    for (const int device : {0, mesh.devices() - 1}) {
      const LocalConfig local = c.local(device);
      for (const auto* list : {&c.placement.tensors, &c.placement.adapters})
        for (const PlacedTensor& p : *list) {
          const std::vector<IndexInterval> used = working_piece(local, p), own = piece(p, mesh, device);
          std::vector<IndexInterval> both;
          for (size_t d = 0; d < used.size(); ++d) {
            const std::int64_t begin = std::max(used[d].begin, own[d].begin);
            both.push_back({begin, std::max(begin, std::min(used[d].end, own[d].end))});
          }
          ASSERT_EQ(sum(c.gather(p, device)), size(used) - size(both)) << p.name << " on " << to_text(mesh);
          all += sum(c.gather(p, device));
        }
    }
  }
  EXPECT_GT(all, 0);
}

// Pieces of equal size: what the stages of rings move, axis by axis, in gathers and sums.
TEST(ReshardReads, EqualPiecesMatchStagedCollectives) {
  const auto staged = [](std::vector<Stage> stages) {
    std::erase_if(stages, [](const Stage& s) { return s.moved == 0; });
    return moved(stages);
  };
  for (const char* const id : {"gemma3-4b", "gemma4-26b-a4b", "gemma2-2b"})
    for (const Mesh& mesh : {two(2, 2), Mesh{{{"data", 2}, {"fsdp", 2}, {"tp", 2}}}, Mesh{{{"tp", 2}, {"fsdp", 4}}}}) {
      const Read c(id, mesh, {});
      ASSERT_TRUE(c.placement.problems.empty());
      for (const int device : {0, 2, mesh.devices() - 1}) {
        for (const auto* list : {&c.placement.tensors, &c.placement.adapters})
          for (const PlacedTensor& p : *list) {
            if (p.role == model::Role::layer_scalar) continue;  // one number
            ASSERT_EQ(moved(c.gather(p, device)), staged(gather_stages(p, c.form)))
                << p.name << " on " << to_text(mesh);
            ASSERT_EQ(moved(c.sum(p, device)), staged(sum_stages(p, c.form))) << p.name << " on " << to_text(mesh);
          }
      }
    }
}

// PyTorch's FSDP2 on three devices: the last one's pieces are smaller.
TEST(ReshardReads, UnevenPiecesExcludePadding) {
  const Read c("gemma3-4b", two(3, 1), {.preset = Preset::fsdp});
  const PlacedTensor& norm = c.tensor("layers.3.input_norm");  // 2560: 854, 854, 852
  ASSERT_EQ(norm.shard, std::vector<std::int64_t>{854});
  EXPECT_THAT(moved(c.gather(norm, 0)), ElementsAre(854 + 852));
  EXPECT_THAT(moved(c.gather(norm, 2)), ElementsAre(2 * 854));
  EXPECT_THAT(moved(gather_stages(norm, c.form)).front(), 2 * 854) << "a ring moves the padding";
  EXPECT_THAT(moved(c.sum(norm, 0)), ElementsAre(2 * 854)) << "its piece of two others";
  EXPECT_THAT(moved(c.sum(norm, 2)), ElementsAre(2 * 852));
}

// Heads over (fsdp, tp), computed over tp: half of them are what device (0, 1) needs, and none of them its own.
TEST(ReshardReads, MisalignedPiecesComeFromTheirOwners) {
  const Read c("gemma3-4b", two(2, 2), {.overrides = {{"q_proj$", parse_spec("((fsdp, tp), -, -)")}}});
  const PlacedTensor& q = c.tensor("layers.3.q_proj");
  const std::int64_t quarter = q.total() / 4;
  EXPECT_THAT(moved(c.gather(q, 0)), ElementsAre(quarter)) << "of (0, 1), over tp";
  EXPECT_EQ(c.gather(q, 0)[0].axis, 1);
  EXPECT_EQ(c.gather(q, 0)[0].cause, Cause::inefficient_spec);
  EXPECT_THAT(moved(c.gather(q, 1)), ElementsAre(2 * quarter)) << "of (1, 0) and (1, 1), over fsdp";
  EXPECT_EQ(c.gather(q, 1)[0].axis, 0);
}

// Two axes along which nothing is split: each device sums a quarter, and the other quarters come back.
TEST(ReshardReads, SumsOverTwoAxesAreDividedAmongAllDevices) {
  const Read c("gemma3-4b", {{{"data", 2}, {"fsdp", 2}}}, {.preset = Preset::replicated});
  const PlacedTensor& norm = c.tensor("layers.3.input_norm");
  EXPECT_THAT(moved(c.sum(norm, 3)), ElementsAre(2560, 1280)) << "over data, then half of it over fsdp";
  EXPECT_THAT(moved(sum_stages(norm, c.form)), ElementsAre(2560, 1280));
}

// A whole K where each device computes with one head: it is told of by others, and shares nothing with them.
TEST(ReshardReads, PartialTermsAreReadByAllDevices) {
  const Read c("gemma3-4b", two(1, 4), {.overrides = {{"(k|v)_proj$", parse_spec("(-, -, -)")}}});
  const PlacedTensor& k = c.tensor("layers.3.k_proj");
  for (int device = 0; device < 4; ++device) EXPECT_THAT(moved(c.sum(k, device)), ElementsAre(k.total() / 4 * 3));
}

}  // namespace
}  // namespace mw::mesh
