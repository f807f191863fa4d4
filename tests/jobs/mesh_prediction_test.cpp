// SPDX-License-Identifier: GPL-3.0-or-later
// What a run on this machine's virtual devices is predicted to need, device by device.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/mesh/collectives/engine_step.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/views/design_view.h"
#include "tests/shipped.h"

namespace mw::jobs {
namespace {

using testing::HasSubstr;

experiment::Experiment example(const std::vector<std::string>& sets) {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/tiny-lora.json");
  experiment::apply_sets(e, sets);
  return e;
}

plan::DeviceMemory quick(const std::vector<std::string>& sets) {
  return plan::plan_experiment(example(sets), test::context(), plan::ReadData::no).plan.memory;
}

TEST(MeshPrediction, EveryDeviceHasItsOwnLedger) {
  const plan::DeviceMemory one = quick({}), four = quick({"mesh.fsdp=2", "mesh.tp=2"});
  ASSERT_EQ(one.devices.size(), 1u);
  ASSERT_EQ(four.devices.size(), 4u);
  EXPECT_EQ(one.at_peak, one.devices[0].at_peak);
  for (const MemoryCategory c : {MemoryCategory::weights, MemoryCategory::activations, MemoryCategory::logits,
                                 MemoryCategory::gradients, MemoryCategory::optimizer}) {
    const Bytes whole = one.at_peak[c], part = four.at_peak[c];
    EXPECT_GT(part, Bytes(0)) << to_string(c);
    EXPECT_LT(part, whole) << to_string(c);
  }
  // Half the width over fsdp, half the heads over tp: a quarter of the weights and a little more.
  const double share = four.at_peak[MemoryCategory::weights] / one.at_peak[MemoryCategory::weights];
  EXPECT_GT(share, 0.24);
  EXPECT_LT(share, 0.35);
  EXPECT_GT(four.at_peak[MemoryCategory::collectives], Bytes(0));
  EXPECT_EQ(one.at_peak[MemoryCategory::collectives], Bytes(0));
  EXPECT_EQ(plan::device_lines({}, one).size(), 0u);
  ASSERT_EQ(plan::device_lines({{{"fsdp", 2}, {"tp", 2}}}, four).size(), 4u);
  EXPECT_THAT(plan::device_lines({{{"fsdp", 2}, {"tp", 2}}}, four)[2], HasSubstr("device 2 (fsdp 1, tp 0): "));
}

TEST(MeshPrediction, JsonKeepsOldKeysAndAddsDevices) {
  const Json one = plan::memory_json(quick({})), four = plan::memory_json(quick({"mesh.fsdp=4"}));
  EXPECT_FALSE(one.contains("devices"));
  ASSERT_EQ(four["devices"].size(), 4u);
  std::int64_t most = 0;
  for (const Json& d : four["devices"]) most = std::max(most, d["total"].get<std::int64_t>());
  EXPECT_EQ(four["total"].get<std::int64_t>(), most);
}

TEST(MeshPrediction, DevicesWithoutRowsHoldLess) {
  const plan::DeviceMemory p = quick({"mesh.fsdp=4", "train.batch=5"});  // two, two, one, none
  const auto activations = [&](size_t d) { return p.devices[d].at_peak[MemoryCategory::activations]; };
  EXPECT_EQ(activations(0), activations(1));
  EXPECT_LT(activations(2), activations(1));
  EXPECT_LT(activations(3), activations(2));
  EXPECT_EQ(p.devices[3].rows.tokens, 0);
  EXPECT_EQ(p.at_peak, p.devices[0].at_peak);
}

TEST(MeshPrediction, ItFitsWhereEachDeviceFits) {
  EXPECT_FALSE(quick({"target.memory_gib=0.25"}).fits());
  const plan::DeviceMemory p = quick({"target.memory_gib=0.25", "mesh.fsdp=4", "mesh.tp=4"});
  EXPECT_TRUE(p.fits());
  EXPECT_EQ(p.capacity, Bytes(268435456));
  EXPECT_EQ(quick({"mesh.fsdp=4"}).capacity.value, quick({}).capacity.value / 4);  // of the machine's memory
}

TEST(MeshPrediction, AnImpossibleMeshIsOneError) {
  const auto id = [](const std::vector<std::string>& sets) {
    try {
      quick(sets);
    } catch (const Error& e) {
      return e.problem().id;
    }
    return std::string();
  };
  EXPECT_EQ(id({"mesh.tp=8"}), "TP-1");  // four KV heads
  EXPECT_EQ(id({"mesh.fsdp=128"}), "MESH-SIZE");
  EXPECT_EQ(id({"mesh.tp=2", "sharding.overrides=q_einsum = (tp, fsdp, -, -)"}), "SPEC-RANK");
  EXPECT_EQ(id({"mesh.tp=2"}), "");
}

TEST(MeshPrediction, TheDesignShowsWhatTheEngineMoves) {
  const experiment::Experiment e = example({"mesh.fsdp=2", "mesh.tp=2", "train.batch=8"});
  const views::Design d = views::design(e, test::context());
  EXPECT_TRUE(plan::runs_here(d.request()));
  ASSERT_FALSE(d.collectives.empty());
  EXPECT_EQ(d.collectives.size(), d.seconds.size());
  for (const mesh::Collective& c : d.collectives)
    if (c.tensor == "layers.1.mlp") {
      EXPECT_EQ(c.kind, mesh::CollectiveKind::all_reduce);
      EXPECT_EQ(c.full, Bytes(d.plan().memory.devices[0].rows.real_tokens * 192 * 4));
    }
  EXPECT_EQ(d.plan().memory.at_peak, plan::plan_experiment(e, test::context()).plan.memory.at_peak);
  EXPECT_FALSE(views::traffic(d, "layers.1.down_proj").empty());
  // The specs that the engine stores by: an A for each of K and V.
  EXPECT_EQ(d.placement.adapters.size(), 6u * 7 * 2);
}

}  // namespace
}  // namespace mw::jobs
