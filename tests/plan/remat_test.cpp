// SPDX-License-Identifier: GPL-3.0-or-later
// What a layer under remat computes again, and what saving it instead costs in memory and gives in time.
#include "core/plan/prediction/activations.h"

#include <gtest/gtest.h>

#include "core/model/catalogue.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/prediction/predict.h"

namespace mw::plan {
namespace {

using model::Role;

Request remat_request(const char* model, model::Stack stack, const char* target) {
  static const plan::PlanContext context = plan::PlanContext::load(std::string(MW_RESOURCES) + "/hardware");
  Request r;
  r.model = model::catalogue_config(model);
  r.target = context.catalogue.target(target);
  r.mesh.axes = {{"fsdp", r.target.devices()}};
  set_stack(r, stack);
  r.method = model::TrainMethod::full;
  r.train.batch = r.target.devices();
  r.train.epochs = 1;
  r.train.remat = model::Remat::layer;
  r.lengths.max_len = 4096;
  r.lengths.count = 1000;
  return r;
}
Request titan() {
  return remat_request("llama3.1-8b", model::Stack::torchtitan, "8xh100");
}
double step(const Request& r) {
  return predict(r).step.seconds.value;
}
Bytes activations(const Request& r) {
  return predict(r).memory.category_peaks[MemoryCategory::activations];
}

TEST(Recomputation, SkipsTheLastProductUnlessANormReadsIt) {
  const Product down{.in = 1, .out = 1, .role = Role::down_proj}, gate{.in = 1, .out = 1, .role = Role::gate_proj};
  Request llama = titan();
  EXPECT_FALSE(recomputes_product(llama, down));
  EXPECT_TRUE(recomputes_product(llama, gate));
  EXPECT_TRUE(recomputes_product(remat_request("gemma3-1b", model::Stack::tunix, "v5e-1"), down));  // a norm follows
  EXPECT_TRUE(recomputes_product(remat_request("llama2-7b", model::Stack::megatron, "1xh100"), down));  // reentrant
  const double before = step(llama);
  llama.profile.recomputation = StackProfile::Recomputation::whole;
  EXPECT_GT(step(llama), before * 1.03);
}

TEST(Recomputation, OmitsTheSumsOfOutputsThatNothingReads) {
  const auto sums = [](const Request& r) {
    double seconds = 0;
    for (const Term& t : predict(r).step.terms)
      if (t.phase == Term::Phase::remat) seconds += t.communication.value;
    return seconds;
  };
  Request r = titan(), whole = titan();
  r.mesh.axes = whole.mesh.axes = {{"fsdp", 1}, {"tp", 8}};
  r.rules.preset = whole.rules.preset = mesh::Preset::megatron;
  whole.profile.recomputation = StackProfile::Recomputation::whole;
  EXPECT_GT(sums(r), 0.4 * sums(whole));
  EXPECT_LT(sums(r), 0.8 * sums(whole));
}

TEST(Recomputation, HidesTheBackwardSumsOfMaxText) {
  const auto hidden = [](const Request& r, Term::Phase phase) {
    double seconds = 0;
    for (const Term& t : predict(r).step.terms)
      if (t.phase == phase) seconds += t.hidden;
    return seconds;
  };
  Request r = remat_request("llama3.1-8b", model::Stack::maxtext, "v5p-8");
  r.mesh.axes = {{"fsdp", 1}, {"tp", 4}};
  r.rules.preset = mesh::Preset::megatron;
  EXPECT_EQ(hidden(r, Term::Phase::forward), 0);
  EXPECT_GT(hidden(r, Term::Phase::remat), 0);
  EXPECT_GT(hidden(r, Term::Phase::backward), 0);
  EXPECT_NE(predict(r).step.overlap.find("behind recomputation"), std::string::npos);
  r.train.remat = model::Remat::none;
  EXPECT_EQ(hidden(r, Term::Phase::backward), 0);
}

TEST(Recomputation, SavingOutputsTradesMemoryForTime) {
  Request r = titan(), none = titan();
  none.train.remat = model::Remat::none;
  const double layer = step(r);
  const Bytes held = activations(r);
  r.train.saved = {options::SavedActivation::attention, options::SavedActivation::q_proj,
                   options::SavedActivation::v_proj, options::SavedActivation::gate_proj,
                   options::SavedActivation::down_proj};
  EXPECT_LT(step(r), layer);
  EXPECT_GT(step(r), step(none));
  EXPECT_GT(activations(r), held);
  EXPECT_LT(activations(r), activations(none));
  EXPECT_FALSE(recomputes_attention(r));
  EXPECT_FALSE(recomputes_product(r, {.in = 1, .out = 1, .role = Role::gate_proj}));
}

TEST(Recomputation, OffloadedActivationsLeaveTheDevice) {
  Request r = titan();
  r.profile.options.offload = true;  // torchtitan has no offload
  r.train.saved = {options::SavedActivation::q_proj};
  const Bytes held = activations(r);
  r.train.offload = options::Offload::host;
  const std::int64_t inputs = 32LL * 4096 * 4096 * 2, queries = inputs;
  EXPECT_EQ(held.value - activations(r).value, inputs + queries);
}

TEST(Gradients, AllocatedLateReplaceActivations) {
  Request late = titan(), from_start = titan();
  late.train.remat = from_start.train.remat = model::Remat::none;
  from_start.profile.gradient_buffers = StackProfile::GradientBuffers::from_start;
  const std::int64_t more =
      predict(from_start).memory.at_peak.total().value - predict(late).memory.at_peak.total().value;
  EXPECT_EQ(more, predict(from_start).memory.at_peak[MemoryCategory::gradients].value);
  late.train.accumulation = from_start.train.accumulation = 2;  // a sum is there all the time
  EXPECT_EQ(predict(late).memory.at_peak.total(), predict(from_start).memory.at_peak.total());
}

TEST(Products, Fp8ProductsAreFasterAndLeaveAttentionUnchanged) {
  Request r = titan();
  const StepTime bf16 = predict(r).step;
  r.products = model::DType::fp8;
  const StepTime fp8 = predict(r).step;
  EXPECT_LT(fp8.compute.value, bf16.compute.value);
  EXPECT_GT(fp8.compute.value, bf16.compute.value / 2);
  EXPECT_GT(fp8.memory.value, bf16.memory.value);  // operands are cast
}

}  // namespace
}  // namespace mw::plan
