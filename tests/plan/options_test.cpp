// SPDX-License-Identifier: GPL-3.0-or-later
// Options that need support of stack and chip: fp8, activations by name, offload, other servers, several slices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/prediction/serve_step.h"

#include "requests.h"

namespace mw::plan {
namespace {

using testing::HasSubstr;

Problem refusal(const Request& r) {
  try {
    predict(r);
  } catch (const Error& e) {
    return e.problem();
  }
  return {};
}
Request llama(model::Stack stack, const char* target = "8xh100") {
  Request r = request("llama3.1-8b", target, stack, {{"fsdp", 8}});
  r.method = model::TrainMethod::full;
  r.train.batch = 8;
  return r;
}
Request served(model::Stack stack, const char* target, int tp) {
  Request r = request("gemma4-31b", target, stack, {{"tp", tp}});
  r.work = Work::serve;
  r.targets.clear();
  r.serve.max_num_seqs = 64, r.serve.max_model_len = 4096, r.serve.max_num_batched_tokens = 8192;
  return r;
}

TEST(Options, Fp8ProductsNeedAStackAndAChipThatHaveThem) {
  Request r = llama(model::Stack::torchtitan);
  const double bf16 = predict(r).step.seconds.value;
  r.products = model::DType::fp8;
  EXPECT_LT(predict(r).step.seconds.value, bf16);
  Request a100 = llama(model::Stack::torchtitan, "8xa100-80");
  a100.products = model::DType::fp8;
  EXPECT_EQ(refusal(a100).id, "PLAN-OPTION");
  EXPECT_EQ(refusal(a100).place, "train.products");
  EXPECT_THAT(refusal(a100).message, HasSubstr("no peak of fp8"));
  Request trl = llama(model::Stack::trl_fsdp);
  trl.products = model::DType::fp8;
  EXPECT_THAT(refusal(trl).found, HasSubstr("trl-fsdp"));
}

TEST(Options, SavedActivationsAndOffloadNeedAStackThatHasThem) {
  Request r = llama(model::Stack::torchtitan);
  r.train.saved = {options::SavedActivation::q_proj};
  EXPECT_EQ(refusal(r).id, "");
  r.train.offload = options::Offload::host;  // torchtitan does not offload activations
  EXPECT_EQ(refusal(r).place, "train.offload");
  Request trl = llama(model::Stack::trl_fsdp);
  const Bytes held = predict(trl).memory.category_peaks[MemoryCategory::activations];
  trl.train.offload = options::Offload::host;
  EXPECT_LT(predict(trl).memory.category_peaks[MemoryCategory::activations], held);
  trl.train.saved = {options::SavedActivation::q_proj};
  EXPECT_EQ(refusal(trl).place, "train.saved");
  Request none = llama(model::Stack::maxtext, "v6e-8");
  none.train.remat = model::Remat::none;
  none.train.offload = options::Offload::host;
  EXPECT_EQ(refusal(none).place, "train.offload");
}

TEST(Options, ServedFp8WeightsHalveLayersAndKeepTheEmbedding) {
  Request r = served(model::Stack::vllm_gpu, "2xh100", 2);
  const Plan bf16 = predict(r);
  r.weights = model::DType::fp8;
  const Plan weights = predict(r);
  r.products = model::DType::fp8;
  const Plan both = predict(r);
  const auto bytes = [](const Plan& p) { return p.memory.at_peak[MemoryCategory::weights].value; };
  const double share = static_cast<double>(bytes(weights)) / static_cast<double>(bytes(bf16));
  EXPECT_GT(share, 0.5);  // embedding and norms stay in bf16
  EXPECT_LT(share, 0.55);
  EXPECT_GT(weights.serve->kv_tokens, bf16.serve->kv_tokens);
  EXPECT_LT(weights.serve->decode_step.value, bf16.serve->decode_step.value);
  EXPECT_LT(both.serve->ttft.value, weights.serve->ttft.value);
  r.weights = model::DType::bf16;
  EXPECT_EQ(refusal(r).place, "serve.products");
}

TEST(Options, WeightsOfAServerAreThoseThatItsSoftwareHas) {
  Request r = served(model::Stack::jetstream, "v6e-8", 8);
  r.weights = model::DType::fp8;
  EXPECT_EQ(refusal(r).place, "serve.weight_dtype");
  r.weights = model::DType::int8;
  EXPECT_EQ(refusal(r).id, "");
}

TEST(Options, ServersReserveTheirCacheDifferently) {
  const auto cache = [](Request r) { return predict(r).memory.at_peak[MemoryCategory::kv_cache].value; };
  const Request vllm = served(model::Stack::vllm_gpu, "2xh100", 2),
                trt = served(model::Stack::tensorrt_llm, "2xh100", 2);
  const DeviceMemory memory = predict(vllm).memory;
  const double others = static_cast<double>(memory.at_peak.total().value - cache(vllm));
  const double capacity = static_cast<double>(memory.capacity.value);
  EXPECT_NEAR(static_cast<double>(cache(vllm)), 0.9 * capacity - others, 2);
  EXPECT_NEAR(static_cast<double>(cache(trt)), 0.9 * (capacity - others), 2);
  Request slots = served(model::Stack::jetstream, "v6e-8", 8);
  const auto before = cache(slots);
  slots.serve.max_num_seqs *= 2;
  EXPECT_NEAR(static_cast<double>(cache(slots)), 2.0 * static_cast<double>(before), 2);
  for (const model::Stack stack : {model::Stack::vllm_gpu, model::Stack::tensorrt_llm, model::Stack::sglang}) {
    const Request r = served(stack, "2xh100", 2);
    EXPECT_GT(predict(r).serve->decode_step.value, 0) << to_string(stack);
    EXPECT_FALSE(r.profile.source.empty());
  }
}

TEST(Options, RefusesAChipWithoutAPublishedPeak) {
  Request r = request("gemma3-1b", "tpu8t-4", model::Stack::tunix, {{"fsdp", 4}});
  EXPECT_EQ(refusal(r).place, "target.id");
  EXPECT_THAT(refusal(r).message, HasSubstr("no peak of bf16 products"));
}

TEST(MultiSlice, PutsTheDataAxisOnTheNetwork) {
  Request one = request("llama3.1-8b", "v6e-256", model::Stack::maxtext, {{"fsdp", 256}});
  one.method = model::TrainMethod::full;
  one.train.batch = 512;
  Request two = one;
  two.target = context().catalogue.target("2xv6e-256");
  two.mesh.axes = {{"data", 2}, {"fsdp", 256}};
  two.train.batch = 1024;
  const mesh::Layout layout = mesh::lay_out(two.mesh, two.target);
  EXPECT_EQ(layout.axes[0].medium, mesh::Medium::network);
  EXPECT_EQ(layout.axes[1].medium, mesh::Medium::link);
  const Plan a = predict(one), b = predict(two);
  EXPECT_GE(b.step.seconds.value, a.step.seconds.value)
      << "the same rows for each chip, and gradients over the network";
  EXPECT_DOUBLE_EQ(b.run.usd_per_hour, 2 * a.run.usd_per_hour);
}

TEST(QwenMoe, SplitsItsExpertsOverTp) {
  Request r = request("qwen3-30b-a3b", "8xh100", model::Stack::vllm_gpu, {{"tp", 8}});
  r.work = Work::serve;
  r.targets.clear();
  r.mesh.axes = {{"tp", 4}};
  r.target = context().catalogue.target("4xh100");
  const double four = static_cast<double>(predict(r).memory.at_peak[MemoryCategory::weights].value);
  EXPECT_NEAR(four / (2 * 30.53e9 / 4), 1, 0.03);
}

// A peak that nobody could check is no basis for a plan.
TEST(Options, WeightsInF32NeedAPeakWithASource) {
  const auto planned = [](const char* target) {
    Request r = request("gemma3-1b", target, model::Stack::trl_fsdp, {{"fsdp", 1}});
    set_weights(r, model::DType::f32);
    return predict(r).step.seconds.value;
  };
  EXPECT_GT(planned("1xrtx4090"), 0);
  EXPECT_GT(planned("1xh200"), 0);
  for (const char* unverified : {"1xt4", "1xrtx5090", "1xmi355x"})
    EXPECT_THROW(planned(unverified), Error) << unverified;
}

}  // namespace
}  // namespace mw::plan
