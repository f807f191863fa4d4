// SPDX-License-Identifier: GPL-3.0-or-later
// Proofs hold with a margin on every mesh and for every architecture, and detect the typical mistakes of a sharded
// engine.
#include "core/train/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/engine/distributed/cluster.h"
#include "core/mesh/collectives/engine_step.h"
#include "tests/engine/cluster_faults.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"
#include "tests/formats/test_files.h"
#include "tests/train/random_model.h"

namespace mw::train {
namespace {

namespace fs = std::filesystem;
using engine::ClusterFaults;
const fs::path kBase = fs::path(MW_RESOURCES) / "base-model";

mesh::Mesh two(int fsdp, int tp) {
  return {{{"fsdp", fsdp}, {"tp", tp}}};
}

Settings settings(const mesh::Mesh& mesh, const fs::path& model = kBase) {
  Settings s;
  s.model = {.path = model,
             .tokenizer = kBase,
             .init = model == kBase ? options::Init::load : options::Init::random,
             .capacity = Bytes(1 << 30),
             .threads = 1};
  s.model.mesh = mesh;
  s.model.rules = mesh::engine_rules({});
  s.lora = {
      .rank = 4, .alpha = 8, .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}};
  s.data.path = fs::path(MW_RESOURCES) / "instructions" / "small-world.json";
  s.data.max_len = 64;
  s.batch = 5;  // does not divide: the last device has fewer rows
  s.accumulation = 2;
  s.rate = {.peak = 5e-3, .steps = 3};
  return s;
}

// The largest difference / bound of losses and gradients, and its name. Updates are excluded, because the first step of
// AdamW has the size of the learning rate even for gradients that are only rounding errors, so that it reaches its
// bound.
std::pair<double, std::string> closest(const MeshComparison& proof) {
  std::pair<double, std::string> nearest{0, ""};
  for (const TensorComparison& t : proof.tensors)
    if (!t.part.ends_with("moment") && t.part != "value" && t.bound > 0 && t.difference / t.bound > nearest.first)
      nearest = {t.difference / t.bound, t.part + " of " + t.tensor + " in step " + std::to_string(t.step)};
  return nearest;
}

std::string broken(const MeshComparison& proof) {
  if (const TensorComparison* t = proof.first_broken_tensor())
    return t->part + " " + t->tensor + " step " + std::to_string(t->step) + ": " + std::to_string(t->difference) +
           " > " + std::to_string(t->bound);
  if (const TrafficComparison* t = proof.first_broken_traffic())
    return mesh::to_string(t->what.kind) + " " + t->what.tensor + " over " + t->what.axis + " " +
           mesh::to_string(t->what.phase) + ": " + std::to_string(t->counted.value) + " counted, " +
           std::to_string(t->planned.value) + " planned";
  return "nothing";
}

void expect_holds(const ProofRequest& request) {
  const MeshComparison proof = prove(request);
  EXPECT_TRUE(proof.holds()) << broken(proof);
  EXPECT_GT(proof.counted(), Bytes(0));
  const auto [share, which] = closest(proof);
  std::printf("closest to its bound: %.3f of it, %s\n", share, which.c_str());
  EXPECT_LT(share, 0.5) << which;  // not by luck
}

class OnMesh : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(OnMesh, ProvesLoraOnShippedModel) {
  expect_holds({.settings = settings(two(GetParam().first, GetParam().second))});
}

TEST_P(OnMesh, ProvesDoraOnShippedModel) {
  ProofRequest request{.settings = settings(two(GetParam().first, GetParam().second))};
  request.settings.lora.dora = true;
  expect_holds(request);
}

INSTANTIATE_TEST_SUITE_P(Meshes, OnMesh,
                         testing::Values(std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(1, 4),
                                         std::pair(4, 2), std::pair(2, 4)));

class OfFamily : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, OfFamily, testing::ValuesIn(engine::test::families()), engine::test::family_name);

TEST_P(OfFamily, ProvesLoraWithDropoutAndRemat) {
  const formats::Scratch folder;
  ProofRequest request{.settings = settings(two(2, 2), test::random_model(GetParam(), folder.path()))};
  request.settings.lora.dropout = 0.1f;
  request.settings.remat = model::Remat::layer;
  expect_holds(request);
}

TEST_P(OfFamily, ProvesDoraWithTwoLearningRates) {
  const formats::Scratch folder;
  ProofRequest request{.settings = settings(two(2, 2), test::random_model(GetParam(), folder.path()))};
  request.settings.lora.dora = true;
  request.settings.lora.plus_ratio = 16;
  request.settings.rate.peak = 3e-4;
  expect_holds(request);
}

TEST_P(OfFamily, ProvesFullTraining) {
  const formats::Scratch folder;
  ProofRequest request{.settings = settings(two(2, 2), test::random_model(GetParam(), folder.path()))};
  request.settings.method = model::TrainMethod::full;
  request.settings.rate.peak = 1e-3;
  expect_holds(request);
}

TEST(Proof, HoldsForBf16Weights) {
  ProofRequest request{.settings = settings(two(2, 2))};
  request.settings.model.weights = model::WeightType::bf16;
  expect_holds(request);
}

TEST(Proof, IsReproducible) {
  const ProofRequest request{.settings = settings(two(2, 2))};
  const MeshComparison a = prove(request), b = prove(request);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].difference, b.tensors[i].difference) << a.tensors[i].tensor;
    EXPECT_EQ(a.tensors[i].bound, b.tensors[i].bound) << a.tensors[i].tensor;
  }
}

// Runs `fault` before the first step.
MeshComparison with_fault(const mesh::Mesh& mesh, const std::function<void(engine::Cluster&)>& fault) {
  ProofRequest request{.settings = settings(mesh)};
  request.settings.batch = 8;
  request.on_mesh = fault;
  return prove(request);
}

TEST(Proof, DetectsFactorUpdatedOnOneDeviceOnly) {
  std::shared_ptr<ClusterFaults::Copies> copies;
  const MeshComparison proof = with_fault(two(2, 4), [&](engine::Cluster& cluster) {
    copies = ClusterFaults::update_on_one_device(cluster, "layers.3.q_proj.lora_a", settings({}).adamw);
  });
  const TensorComparison* first = proof.first_broken_tensor();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->tensor, "layers.3.q_proj.lora_a");
  EXPECT_EQ(first->step, 2);  // in step 1 its gradient is zero: B is
}

TEST(Proof, DetectsMomentsOfOtherShard) {
  ProofRequest request{.settings = settings(two(1, 4))};
  request.settings.batch = 8;
  engine::Cluster* mesh = nullptr;
  request.on_mesh = [&](engine::Cluster& cluster) { mesh = &cluster; };
  request.progress = [&](const std::string& phase, long done, long) {
    if (phase == "proving" && done == 1) ClusterFaults::exchange_moments(*mesh, "layers.2.up_proj.lora_b");
  };
  const MeshComparison proof = prove(request);
  const TensorComparison* first = proof.first_broken_tensor();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->tensor, "layers.2.up_proj.lora_b");
  EXPECT_EQ(first->part, "first moment");
  EXPECT_EQ(first->step, 2);
}

TEST(Proof, DetectsGradientThatWasNotReduced) {
  for (const auto& [mesh, tensor] :
       {std::pair(two(2, 1), "layers.4.down_proj.lora_b"), std::pair(two(2, 4), "layers.0.q_proj.lora_b")}) {
    const MeshComparison proof =
        with_fault(mesh, [&, of = tensor](engine::Cluster& cluster) { ClusterFaults::leave_sum_out(cluster, of); });
    const TensorComparison* first = proof.first_broken_tensor();
    ASSERT_NE(first, nullptr) << tensor;
    EXPECT_EQ(first->part, "gradient");
    EXPECT_EQ(first->tensor, tensor);
    EXPECT_EQ(first->step, 1);
    EXPECT_GT(first->difference, 100 * first->bound) << "the bound is too generous to be one";
    const TrafficComparison* unread = proof.first_broken_traffic();
    ASSERT_NE(unread, nullptr);
    EXPECT_EQ(unread->what.tensor, tensor);
    EXPECT_LT(unread->counted, unread->planned);
  }
}

TEST(Proof, DetectsMagnitudesWhoseGradientWasNotReduced) {
  ProofRequest request{.settings = settings(two(2, 2))};
  request.settings.lora.dora = true;
  request.on_mesh = [](engine::Cluster& cluster) { ClusterFaults::leave_sum_out(cluster, "layers.1.o_proj.lora_m"); };
  const MeshComparison proof = prove(request);
  const TensorComparison* first = proof.first_broken_tensor();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->tensor, "layers.1.o_proj.lora_m");
  EXPECT_EQ(first->part, "gradient");
  EXPECT_EQ(first->step, 1);
}

// The mistake does not affect computed values.
TEST(Proof, DetectsWeightGatheredTwice) {
  const MeshComparison proof = with_fault(
      two(2, 2), [&](engine::Cluster& cluster) { ClusterFaults::read_weight_twice(cluster, "layers.2.down_proj", 2); });
  EXPECT_EQ(proof.first_broken_tensor(), nullptr);
  const TrafficComparison* first = proof.first_broken_traffic();
  ASSERT_NE(first, nullptr);
  EXPECT_FALSE(proof.holds());
  EXPECT_EQ(first->what.tensor, "layers.2.down_proj");
  EXPECT_EQ(first->device, 2);
  EXPECT_EQ(first->counted.value, 2 * first->planned.value);
}

TEST(Proof, RejectsOneDevice) {
  try {
    prove({.settings = settings(two(1, 1))});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().id, "MESH");
  }
}

TEST(Proof, StopsOnRequest) {
  std::stop_source stop;
  ProofRequest request{.settings = settings(two(2, 2))};
  request.progress = [&](const std::string& phase, long, long) {
    if (phase == "proving") stop.request_stop();
  };
  try {
    prove(request, stop.get_token());
    FAIL() << "went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::cancelled);
  }
}

}  // namespace
}  // namespace mw::train
