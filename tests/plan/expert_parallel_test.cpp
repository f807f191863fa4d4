// SPDX-License-Identifier: Apache-2.0
// The mesh axis "ep": experts shared out whole, tokens exchanged.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/mesh/layout/sharding_options.h"
#include "core/plan/prediction/collective_time.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/prediction/serve_step.h"
#include "core/plan/prediction/step_time.h"
#include "core/plan/request/local_model.h"
#include "tests/plan/requests.h"

namespace mw::plan {
namespace {

using mesh::Cause;
using mesh::CollectiveKind;

constexpr const char* kExperts = "qwen3-30b-a3b";

Request trained(model::Stack stack, const char* model, std::vector<mesh::MeshAxis> axes) {
  Request r = request(model, stack == model::Stack::maxtext ? "v5p-16" : "8xh100", stack, std::move(axes));
  r.method = model::TrainMethod::full;
  r.targets.clear();
  r.train.batch = 8;
  return r;
}

std::vector<mesh::Collective> exchanges(const Request& r, mesh::StepKind work) {
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  const mesh::StepShape shape =
      complete_step_shape({.work = work, .rows = 8, .tokens = 4096, .recompute = mesh::Recompute::none}, r);
  std::vector<mesh::Collective> out;
  for (const mesh::Collective& c : mesh::collectives(m.config, r.mesh, m.placement, shape))
    if (c.cause == Cause::experts) out.push_back(c);
  return out;
}

TEST(ExpertParallel, EachDeviceHoldsItsShareOfTheExpertsAndAllOtherWeights) {
  const auto held = [](std::vector<mesh::MeshAxis> axes) {
    const Request r = trained(model::Stack::megatron, kExperts, std::move(axes));
    double experts = 0, others = 0;
    for (const mesh::PlacedTensor& t : local_model(r, mesh::ShardingUse::training).placement.tensors)
      (t.role == model::Role::experts_gate_up || t.role == model::Role::experts_down ? experts : others) +=
          static_cast<double>(t.elements());
    return std::pair(experts, others);
  };
  const auto copied = held({{"data", 8}}), shared = held({{"ep", 8}});
  EXPECT_DOUBLE_EQ(shared.first, copied.first / 8);
  EXPECT_DOUBLE_EQ(shared.second, copied.second);
}

TEST(ExpertParallel, MaxTextSplitsTheOtherWeightsOverTheAxisToo) {
  const Request r = trained(model::Stack::maxtext, kExperts, {{"fsdp", 2}, {"ep", 4}});
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  EXPECT_EQ(m.batch_ways, 8);
  double all = 0, held = 0;
  for (const mesh::PlacedTensor& t : m.placement.tensors) all += t.total(), held += t.elements();
  EXPECT_NEAR(held / all, 1.0 / 8, 0.001);  // norms and routers are copies
  for (const mesh::PlacedTensor& t : m.placement.tensors)
    if (t.role == model::Role::experts_down) {
      EXPECT_EQ(mesh::to_text(t.spec), "(ep, tp, fsdp)");
    }
}

// Each of 8 devices has a row of 4,096 tokens; each token goes to 8 experts as 2,048 bf16 values.
TEST(ExpertParallel, TokensAreSentToTheirExpertsAndBack) {
  const Request r = trained(model::Stack::megatron, kExperts, {{"ep", 8}});
  const std::vector<mesh::Collective> list = exchanges(r, mesh::StepKind::train_full);
  ASSERT_EQ(list.size(), 2u);  // of the one layer that stands for all; forward and backward
  const std::int64_t full = std::int64_t{4096} * 8 * 2048 * 2;
  for (const mesh::Collective& c : list) {
    EXPECT_EQ(c.kind, CollectiveKind::all_to_all);
    EXPECT_EQ(c.full.value, full);
    EXPECT_EQ(c.moved.value, full - full / 8);
    EXPECT_EQ(c.calls, 2);
  }
  EXPECT_TRUE(exchanges(trained(model::Stack::megatron, kExperts, {{"data", 8}}), mesh::StepKind::train_full).empty());
}

// The gradients of experts are summed over the axes that copy them only.
TEST(ExpertParallel, GradientsOfExpertsStayOnTheirDevices) {
  const Request r = trained(model::Stack::megatron, kExperts, {{"data", 2}, {"ep", 4}});
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  const mesh::StepShape shape = complete_step_shape({.work = mesh::StepKind::train_full, .rows = 8, .tokens = 64}, r);
  for (const mesh::Collective& c : mesh::collectives(m.config, r.mesh, m.placement, shape))
    if (c.cause == Cause::gradients && c.tensor.find("experts") != std::string::npos) {
      EXPECT_EQ(c.axis, "data");
    }
}

TEST(ExpertParallel, ServersGatherTheTokensAndReadFewerExpertsOnEachDevice) {
  const auto server = [](std::vector<mesh::MeshAxis> axes) {
    Request r = request(kExperts, "8xh100", model::Stack::vllm_gpu, std::move(axes));
    r.work = Work::serve;
    r.serve.max_num_seqs = 64;
    return r;
  };
  const Request r = server({{"ep", 8}});
  for (const mesh::Collective& c : exchanges(r, mesh::StepKind::decode)) EXPECT_NE(c.kind, CollectiveKind::all_to_all);
  EXPECT_EQ(exchanges(r, mesh::StepKind::decode).size(), 2u);
  const StepLoad load{.decoding = 8, .read_tokens = 8 * 1024};
  const double shared = ServeStepModel(r).parts(load).base.value,
               copied = ServeStepModel(server({{"data", 8}})).parts(load).base.value;
  EXPECT_LT(shared, copied);  // 8 tokens choose 52 of the 128 experts, of which each device reads a part
}

// On 2x2x2 chips a byte goes half a hop along each of three dimensions on average; those of an all-gather go to
// neighbours.
TEST(ExpertParallel, AnAllToAllCrossesAQuarterOfEachRing) {
  const Request r = trained(model::Stack::maxtext, kExperts, {{"ep", 8}});
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  mesh::Collective c;
  c.kind = CollectiveKind::all_to_all;
  c.axis = "ep";
  c.group = 8;
  c.full = Bytes(std::int64_t{1} << 33);
  c.moved = mesh::bytes_sent(c.kind, c.full, 8);
  const double exchanged = collective_value(c, m.layout, r.target, r.efficiencies);
  c.kind = CollectiveKind::all_gather;
  EXPECT_NEAR(exchanged / collective_value(c, m.layout, r.target, r.efficiencies), 1.5, 0.01);
}

TEST(ExpertParallel, OnlySoftwareThatSharesExpertsSplitsOverTheAxis) {
  const auto unused = [](model::Stack stack, const char* model) {
    const Request r = trained(stack, model, {{"data", 2}, {"ep", 4}});
    return mesh::find_unused_axes(r.mesh, r.rules).size();
  };
  EXPECT_EQ(unused(model::Stack::megatron, kExperts), 0u);
  EXPECT_EQ(unused(model::Stack::megatron, "llama3.1-8b"), 1u);  // no experts
  EXPECT_EQ(unused(model::Stack::torchtitan, kExperts), 1u);
}

TEST(ExpertParallel, SizesThatDoNotDivideTheExpertsAreRefused) {
  const Request r = request(kExperts, "3xh100", model::Stack::megatron, {{"ep", 3}});
  const auto problems = local_model(r, mesh::ShardingUse::training).placement.problems;
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.id == "SPEC-DIVIDES"; }));
}

}  // namespace
}  // namespace mw::plan
