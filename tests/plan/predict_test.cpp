// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "requests.h"

namespace mw::plan {
namespace {

double gib(Bytes b) {
  return static_cast<double>(b.value) / 1073741824.0;
}
Bytes at_peak(const Request& r) {
  return predict(r).memory.at_peak.total();
}

TEST(Predict, LedgerIsTheSumOfItsBuffers) {
  const Plan p = predict(lora_31b_v5p());
  Ledger sum;
  for (const Buffer& b : p.memory.buffers) {
    sum[b.category] += b.bytes;
    EXPECT_GE(b.bytes, b.unpadded) << b.name;
    EXPECT_FALSE(b.formula.empty()) << b.name;
  }
  EXPECT_EQ(sum, p.memory.at_peak);
  EXPECT_FALSE(p.memory.peak_instant.empty());
  for (size_t c = 0; c < kMemoryCategories; ++c) EXPECT_GE(p.memory.category_peaks.bytes[c], sum.bytes[c]);
  EXPECT_LE(p.memory.total.low, p.memory.total.value);
  EXPECT_GE(p.memory.total.high, p.memory.total.value);
}

TEST(Predict, MemoryMatchesPublishedArithmetic) {  // section 4.6: 15.4 GB of weights, about 20-27 GB
  const Plan p = predict(lora_31b_v5p());
  EXPECT_NEAR(static_cast<double>(p.memory.at_peak[MemoryCategory::weights].value), 15.35e9, 0.05e9);
  EXPECT_GT(p.memory.at_peak.total(), Bytes(18'000'000'000));
  EXPECT_LT(p.memory.at_peak.total(), Bytes(27'000'000'000));
  EXPECT_TRUE(p.fits());
}

TEST(Predict, RematTradesTimeForMemory) {
  Request r = lora_31b_v5p();
  const Plan layer = predict(r);
  r.train.remat = model::Remat::block;
  const Plan block = predict(r);
  r.train.remat = model::Remat::none;
  const Plan none = predict(r);
  EXPECT_LT(layer.memory.category_peaks[MemoryCategory::activations],
            none.memory.category_peaks[MemoryCategory::activations]);
  EXPECT_LT(block.memory.category_peaks[MemoryCategory::activations],
            none.memory.category_peaks[MemoryCategory::activations]);
  EXPECT_LT(none.step.seconds.value, layer.step.seconds.value);
}

TEST(Predict, ComputeIsFourOrSixTimesTheParametersAndTokens) {
  Request r = lora_31b_v5p();
  r.targets.clear();  // the base alone
  r.profile.attention = StackProfile::Attention::fused;
  r.efficiencies.attention.value = 1e12;  // leaves the products
  const double tokens = 8 * 4096, peak = 4 * 459e12 * r.efficiencies.matmul.value;
  EXPECT_NEAR(predict(r).step.compute.value, (6 * 30.70e9 - 2 * 1.41e9) * tokens / peak,
              0.02);  // the head is not redone
  r.train.remat = model::Remat::none;
  EXPECT_NEAR(predict(r).step.compute.value, 4 * 30.70e9 * tokens / peak, 0.02);
}

// JAX draws the masks of adapters on the vector units: 8 rows x 4,096 tokens of all inputs of the layers' projections,
// twice (recomputed), at 119 operations each.
TEST(Predict, DropoutTakesTheTpusVectorUnits) {
  Request r = lora_31b_v5p();
  const double without = predict(r).step.compute.value;
  r.lora.dropout = 0.1;
  const double added = predict(r).step.compute.value - without;
  EXPECT_GT(added, 0.4);
  EXPECT_LT(added, 3);
  r = request("gemma4-31b", "2xh100", model::Stack::trl_fsdp, {{"fsdp", 2}});
  r.train.batch = 2;
  const double gpu = predict(r).step.compute.value;
  r.lora.dropout = 0.1;
  EXPECT_EQ(predict(r).step.compute.value, gpu);
}

// PEFT computes B A of every adapted projection as the outputs for an identity matrix, in every pass whatever its
// tokens, and with dropout the base product once more.
TEST(Predict, DoraComputesTheNormsOfRowsInEveryPass) {
  Request r = request("gemma3-1b", "2xh100", model::Stack::trl_fsdp, {{"fsdp", 2}});
  r.train.remat = model::Remat::none;
  r.train.batch = 2;
  const double lora = predict(r).step.compute.value;
  const Bytes held = predict(r).memory.at_peak.total();
  r.lora.dora = true;
  const double dora = predict(r).step.compute.value;
  constexpr double kInputs = 5.0 * 1152 * 1152 + 1024.0 * 1024 + 6912.0 * 6912,
                   kWeights = 1152.0 * (1024 + 2 * 256 + 1024 + 3 * 6912);
  const double pass = 26 * 2 * 64 * (kInputs + kWeights) / (989e12 * r.efficiencies.matmul.value);
  EXPECT_NEAR((dora - lora) / pass, 1, 0.05);
  EXPECT_GT(predict(r).memory.at_peak.total(), held);
  r.train.accumulation = 4;
  const double four = predict(r).step.compute.value;
  r.lora.dora = false;
  EXPECT_NEAR((four - predict(r).step.compute.value) / pass, 4, 0.2);
  r.lora.dropout = 0.1;
  const double dropped = predict(r).step.compute.value;
  r.lora.dora = true;
  EXPECT_GT(predict(r).step.compute.value, 1.3 * dropped);
}

// PyTorch runs FlashAttention-2, which reaches 35 % of an H100; Megatron-LM runs cuDNN's kernels.
TEST(Predict, AttentionOfPyTorchOnHopperIsFlashAttention2) {
  const auto share = [](model::Stack stack, const char* target) {
    return request("llama3.1-8b", target, stack, {}).efficiencies.attention.value;
  };
  EXPECT_DOUBLE_EQ(share(model::Stack::torchtitan, "8xh100"), 0.35);
  EXPECT_DOUBLE_EQ(share(model::Stack::megatron, "8xh100"), 0.5);
  EXPECT_DOUBLE_EQ(share(model::Stack::torchtitan, "8xa100-80"), 0.5);
}

TEST(Predict, AChunkedLossNeedsFewerLogits) {
  Request r = lora_31b_v5p();
  const Ledger whole = predict(r).memory.category_peaks;
  r.train.loss_chunk = 256;
  const Ledger chunked = predict(r).memory.category_peaks;
  EXPECT_NEAR(chunked[MemoryCategory::logits] / whole[MemoryCategory::logits], 256.0 / 4096, 1e-3);
}

TEST(Predict, FsdpSplitsWeightsAndAddsGathers) {
  const Plan tp = predict(lora_31b_v5p(1, 4)), fsdp = predict(lora_31b_v5p(4, 1));
  EXPECT_NEAR(fsdp.memory.at_peak[MemoryCategory::weights] / tp.memory.at_peak[MemoryCategory::weights], 1,
              0.03);  // 1,344 columns fill tiles of 128 less
  EXPECT_EQ(tp.memory.category_peaks[MemoryCategory::collectives].value, 0);
  EXPECT_GT(gib(fsdp.memory.category_peaks[MemoryCategory::collectives]), 1.5);
  EXPECT_GT(fsdp.step.communication.value, 0);
}

TEST(Predict, KvCacheMatchesPublishedSizes) {  // section 1.7
  Request r = request("gemma4-31b", "v6e-8", model::Stack::vllm_tpu, {{"tp", 8}});
  r.work = Work::serve;
  r.targets.clear();
  r.sliding_window_kv = false;
  r.serve.max_model_len = 16384;
  // 450,560 elements per token; 4 global KV heads repeat over 8 devices: 491,520.
  EXPECT_DOUBLE_EQ(predict(r).serve->kv_bytes_per_token, 491520.0 * 2 / 8);
  r.kv = model::DType::fp8;
  EXPECT_DOUBLE_EQ(predict(r).serve->kv_bytes_per_token, 491520.0 / 8);
  r.kv = model::DType::bf16;
  const std::int64_t without = predict(r).serve->kv_tokens;
  EXPECT_NEAR(static_cast<double>(without), 181e3, 30e3);
  r.sliding_window_kv = true;
  EXPECT_GT(predict(r).serve->kv_tokens, 4 * without);
}

TEST(Predict, AdaptersAndMomentsFollowTheStacksTypes) {
  Request r = request("gemma3-4b", "1xh100", model::Stack::trl_fsdp, {{"fsdp", 1}});
  const Ledger f32 = predict(r).memory.at_peak;
  r.profile.adapters = model::DType::bf16;
  const Ledger bf16 = predict(r).memory.at_peak;
  EXPECT_NEAR(f32[MemoryCategory::adapters] / bf16[MemoryCategory::adapters], 2, 1e-3);
  EXPECT_EQ(f32[MemoryCategory::optimizer], bf16[MemoryCategory::optimizer]);
}

// f32 weights gave the same step to the digit on TPUs, and 2 bytes a weight in full training with TRL.
TEST(Predict, F32TakesMoreTimeAndMemoryOnEveryStack) {
  struct StackOn {
    const char* target;
    model::Stack stack;
  };
  for (const StackOn& row : {StackOn{"v5p-8", model::Stack::tunix}, StackOn{"v5p-8", model::Stack::torchax},
                             StackOn{"v5p-8", model::Stack::maxtext}, StackOn{"8xh100", model::Stack::trl_fsdp},
                             StackOn{"8xh100", model::Stack::torchtune}, StackOn{"8xh100", model::Stack::megatron},
                             StackOn{"8xh100", model::Stack::torchtitan}})
    for (const auto method : {model::TrainMethod::lora, model::TrainMethod::full}) {
      const int devices = context().catalogue.target(row.target).devices();
      Request r = request("gemma3-4b", row.target, row.stack, {{"fsdp", devices}, {"tp", 1}});
      const Bytes two_bytes = predict(r).memory.at_peak[MemoryCategory::weights];  // of a base that LoRA does not train
      r.method = method;
      r.train.batch = devices;
      const Plan bf16 = predict(r);
      set_weights(r, model::DType::f32);
      const Plan f32 = predict(r);
      EXPECT_GT(f32.step.seconds.value, 1.02 * bf16.step.seconds.value) << to_string(row.stack);
      EXPECT_GT(f32.memory.at_peak.total(), bf16.memory.at_peak.total()) << to_string(row.stack);
      EXPECT_NEAR(f32.memory.at_peak[MemoryCategory::weights] / two_bytes, 2, 0.05) << to_string(row.stack);
    }
  Request gpu = request("gemma3-4b", "8xh100", model::Stack::trl_fsdp, {{"fsdp", 8}});
  gpu.train.batch = 8;
  const double bf16 = predict(gpu).step.compute.value;
  set_weights(gpu, model::DType::f32);
  EXPECT_GT(predict(gpu).step.compute.value, 10 * bf16);  // 67 of 989 TFLOP/s
  gpu.target.chip.f32_flops = {};
  EXPECT_THROW(predict(gpu), Error);
}

TEST(Predict, PackingReportsItsSaving) {
  Request r = lora_31b_v5p();
  r.lengths.histogram = {{512, 900}, {2048, 100}};
  const Plan padded = predict(r);
  EXPECT_NEAR(padded.run.real_share, (0.9 * 512 + 0.1 * 2048) / 4096, 1e-9);
  EXPECT_THAT(padded.problems, testing::Contains(testing::Field(&Problem::id, "PADDING")));
  EXPECT_GT(padded.run.packed_speedup, 5);
  r.lengths.rows = RowLayout::packed;
  const Plan packed = predict(r);
  EXPECT_GT(packed.run.tokens_per_second, 5 * padded.run.tokens_per_second);
  EXPECT_THAT(packed.problems, testing::Not(testing::Contains(testing::Field(&Problem::id, "PADDING"))));
}

TEST(Predict, CostIsHoursTimesChipsTimesPrice) {
  const Plan p = predict(lora_31b_v5p());
  EXPECT_DOUBLE_EQ(p.run.usd_per_hour, 16.80);
  EXPECT_DOUBLE_EQ(p.run.usd.value, p.run.hours.value * 16.80);
  EXPECT_NEAR(p.run.hours.value * 3600, 100 * p.step.seconds.value + p.compile.value, 1e-6);
}

TEST(Predict, EveryEstimateHasItsIntervalOriginAndSource) {
  const Plan p = predict(lora_31b_v5p());
  for (const Term& t : p.step.terms)
    for (const Estimate* e : {&t.compute, &t.memory, &t.communication}) {
      if (e->value == 0) continue;
      EXPECT_LE(e->low, e->value) << t.part;
      EXPECT_GE(e->high, e->value) << t.part;
      EXPECT_FALSE(e->formula.empty()) << t.part;
      EXPECT_FALSE(e->source.empty()) << t.part;
    }
  double sum = p.step.fixed.value;
  for (const Term& t : p.step.terms) sum += t.seconds();
  EXPECT_NEAR(sum, p.step.seconds.value, 1e-9);
}

TEST(Predict, ReportsMissingMemoryAndItsPeak) {
  Request r = request("gemma4-31b", "v6e-1", model::Stack::tunix, {{"fsdp", 1}, {"tp", 1}});
  const Plan p = predict(r);
  EXPECT_FALSE(p.fits());
  EXPECT_THAT(p.problems, testing::Contains(testing::Field(&Problem::id, "MEMORY")));
}

TEST(Predict, OrderOfTheMeshDoesNotMatter) {
  for (const char* target : {"16xh100", "16xb200"}) {
    Request r = request("gemma4-31b", target, model::Stack::trl_fsdp, {{"data", 2}, {"fsdp", 8}});
    r.train.batch = 16;
    const Plan in_order = predict(r);
    std::reverse(r.mesh.axes.begin(), r.mesh.axes.end());
    EXPECT_EQ(predict(r).step.seconds.value, in_order.step.seconds.value);
    EXPECT_EQ(predict(r).memory.at_peak, in_order.memory.at_peak);
  }
}

TEST(Predict, RejectsInvalidRequests) {
  Request r = lora_31b_v5p();
  r.mesh.axes = {{"fsdp", 1}, {"tp", 3}};
  EXPECT_THROW(predict(r), Error);
  r = lora_31b_v5p();
  r.train.batch = 0;
  EXPECT_THROW(predict(r), Error);
  r.train.batch = std::int64_t{1} << 50;
  EXPECT_THROW(predict(r), Error);
}

TEST(Predict, IsDeterministic) {
  EXPECT_EQ(predict(lora_31b_v5p()).step.seconds.value, predict(lora_31b_v5p()).step.seconds.value);
  EXPECT_EQ(at_peak(lora_31b_v5p()), at_peak(lora_31b_v5p()));
}

// Martin Andrews, "Sizing gemma3 for TPUv5-n": Gemma 3 1B on one v5e chip.
Request sizing(int rows, std::vector<model::Role> targets) {
  Request r = request("gemma3-1b", "v5e-1", model::Stack::tunix, {{"fsdp", 1}, {"tp", 1}});
  r.targets = std::move(targets);
  r.sliding_window_kv = false;
  r.rollout = {.batch = rows, .prompt = 128, .new_tokens = 1024, .cache_len = 256 + 1024 + 32};
  r.forward = {.batch = rows, .len = 1024};
  return r;
}

TEST(SizingNotes, RolloutFits200RowsAndNot256) {
  Request r = sizing(200, {});
  r.work = Work::rollout;
  EXPECT_TRUE(predict(r).fits()) << to_text(at_peak(r));
  r.rollout.batch = 256;
  EXPECT_FALSE(predict(r).fits()) << to_text(at_peak(r));
  r = sizing(136, every_projection());  // with adapters: tested to 136
  r.work = Work::rollout;
  EXPECT_TRUE(predict(r).fits()) << to_text(at_peak(r));
}

TEST(SizingNotes, FullLogitsFit10RowsAndNot12AndChunksFit136) {
  for (const auto& targets : {std::vector<model::Role>{}, every_projection()}) {
    Request r = sizing(10, targets);
    r.work = Work::forward;
    EXPECT_TRUE(predict(r).fits()) << to_text(at_peak(r));
    r.forward.batch = 12;
    EXPECT_FALSE(predict(r).fits()) << to_text(at_peak(r));
    r.forward = {.batch = 136, .len = 1024, .chunk = 136, .top_k = 128};
    EXPECT_TRUE(predict(r).fits()) << to_text(at_peak(r));
  }
}

// The time of a token jumps from 64 to 68 and from 128 to 132 rows, and nowhere else as much.
TEST(SizingNotes, DecodeJumpsWhereItWasMeasured) {
  const auto token = [](int rows) {
    Request r = sizing(rows, {});
    r.work = Work::rollout;
    return predict(r).serve->decode_step.value;
  };
  for (const int rows : {64, 128}) {
    EXPECT_GT(token(rows + 4), 1.15 * token(rows)) << rows;
    EXPECT_NEAR(token(rows + 8) / token(rows + 4), 1, 0.02) << rows;
    EXPECT_NEAR(token(rows) / token(rows - 4), 1, 0.05) << rows;
  }
}

TEST(SizingNotes, WeightsAreWhatTheDeviceReported) {
  Request r = sizing(1, {});
  r.work = Work::rollout;
  EXPECT_NEAR(static_cast<double>(predict(r).memory.at_peak[MemoryCategory::weights].value), 2'000'511'488.0, 2e6);
}

}  // namespace
}  // namespace mw::plan
