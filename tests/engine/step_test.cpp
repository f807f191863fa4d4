// SPDX-License-Identifier: GPL-3.0-or-later
// What must not change the result of a step: remat, chunking, threads, repetition, padding, packing.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/engine/transformer/optimizer.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

struct Outcome {
  double loss = 0;
  std::vector<float> gradients;
  bool operator==(const Outcome&) const = default;
};

struct Setting {
  int threads = 1;
  model::WeightType type = model::WeightType::f32;
  model::TrainMethod method = model::TrainMethod::lora;
  float dropout = 0;
  StepOptions step{};
};

Outcome outcome(const Setting& s, const OwnedBatch& batch, const model::Config& config = tiny_config()) {
  Device device(Bytes(0), s.threads);
  Network network(config, device, s.type);
  fill(network, 3, 0.2f);
  if (s.method == model::TrainMethod::lora) {
    network.add_lora(all_projections(3, s.dropout), 5);
    randomise_adapters(network, 6);
  }
  network.set_trainable(s.method);
  const LossSum loss = network.forward_backward(batch, s.step);
  return {loss.sum, all_gradients(network)};
}

double relative_distance(const Outcome& a, const Outcome& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    difference += std::pow(static_cast<double>(a.gradients[i]) - static_cast<double>(b.gradients[i]), 2);
    size += std::pow(static_cast<double>(a.gradients[i]), 2);
  }
  return std::sqrt(difference / size);
}

class EveryFamily : public ::testing::TestWithParam<std::string> {
 protected:
  const model::Config config = as_family(tiny_config(), GetParam());
};
INSTANTIATE_TEST_SUITE_P(Step, EveryFamily, ::testing::ValuesIn(families()), family_name);

TEST_P(EveryFamily, RematNeverChangesABit) {
  const OwnedBatch batch = packed_batch(3, 20, 61);
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full})
    for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
      Setting s{.type = type, .method = method, .dropout = method == model::TrainMethod::lora ? 0.2f : 0.0f};
      const Outcome kept = outcome(s, batch, config);
      ASSERT_GT(kept.loss, 0);
      for (const model::Remat remat : {model::Remat::block, model::Remat::layer}) {
        s.step.remat = remat;
        EXPECT_TRUE(outcome(s, batch, config) == kept) << "remat " << static_cast<int>(remat);
      }
    }
}

TEST_P(EveryFamily, ChunkedLossEqualsUnchunked) {
  const OwnedBatch batch = packed_batch(3, 20, 61);
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
    Setting s{.method = method};
    s.step.loss_chunk = 0;
    const Outcome whole = outcome(s, batch, config);
    for (const int chunk : {1, 9, 16, 1000}) {
      s.step.loss_chunk = chunk;
      const Outcome chunked = outcome(s, batch, config);
      EXPECT_NEAR(chunked.loss, whole.loss, 1e-5 * whole.loss);
      EXPECT_LT(relative_distance(chunked, whole), 2e-6) << chunk;
    }
  }
}

TEST_P(EveryFamily, IsTheSameBitForBitWhenRepeated) {
  const OwnedBatch batch = packed_batch(5, 70, 61);
  for (const int threads : {1, 2, 3}) {
    const Setting s{.threads = threads, .dropout = 0.1f};
    EXPECT_TRUE(outcome(s, batch, config) == outcome(s, batch, config)) << threads << " threads";
  }
}

TEST_P(EveryFamily, ThreadCountOnlyChangesRounding) {
  const OwnedBatch batch = packed_batch(5, 70, 61);
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
    const Outcome one = outcome({.threads = 1, .method = method}, batch, config),
                  two = outcome({.threads = 2, .method = method}, batch, config);
    EXPECT_NEAR(one.loss, two.loss, 1e-5 * one.loss);
    EXPECT_LT(relative_distance(one, two), 2e-6);
  }
}

// Sizes in whole panels of packed weights, where the processor has them.
model::Config in_panels(model::Config c) {
  c.vocab = 64, c.dim = 32;
  if (c.experts > 0) c.expert_dim = 32;
  if (c.ple_dim > 0) c.ple_dim = 32;
  for (model::Layer& l : c.layers) l.head_dim *= 2, l.mlp_dim = 64;
  return c;
}

TEST_P(EveryFamily, Bf16WeightsStayCloseToF32) {
  for (model::Config c : {config, in_panels(config)}) {
    c.experts_per_token = c.experts;  // a rounded score may choose another
    const OwnedBatch batch = packed_batch(3, 20, c.vocab);
    for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
      const Outcome exact = outcome({.method = method}, batch, c),
                    rounded = outcome({.type = model::WeightType::bf16, .method = method}, batch, c);
      EXPECT_NEAR(rounded.loss, exact.loss, 0.02 * exact.loss);
      EXPECT_LT(relative_distance(exact, rounded),
                config.attention_scale == 1 ? 0.15 : 0.05);  // unscaled scores are steep
      EXPECT_GT(relative_distance(exact, rounded), 1e-5) << "bf16 must really round";
    }
  }
}

TEST(Step, DropoutIsRedrawnPerStepMicroBatchAndSeed) {
  const OwnedBatch batch = packed_batch(2, 20, 61);
  Setting s{.dropout = 0.4f};
  const Outcome first = outcome(s, batch);
  EXPECT_TRUE(outcome(s, batch) == first);
  for (std::uint64_t StepOptions::*field :
       {&StepOptions::dropout_seed, &StepOptions::step, &StepOptions::micro_batch}) {
    Setting other = s;
    other.step.*field = 1;
    EXPECT_NE(outcome(other, batch).loss, first.loss);
  }
  s.dropout = 0;
  EXPECT_NE(outcome(s, batch).loss, first.loss);
}

TEST_P(EveryFamily, PackedSegmentsEqualSeparateRows) {
  const OwnedBatch packed = packed_batch(1, 20, 61);  // segments of 11 and 7 tokens, 2 of padding
  OwnedBatch apart{
      2, 11, std::vector<int>(22, 0), std::vector<int>(22, -1), std::vector<int>(22, 0), std::vector<int>(22, -1)};
  for (size_t i = 0; i < 18; ++i) {
    const size_t at = i;  // row 1 begins at column 11 of the packed row, at index 11 here too
    apart.ids[at] = packed.ids[i], apart.targets[at] = packed.targets[i];
    apart.positions[at] = packed.positions[i], apart.segments[at] = 0;
  }
  const Outcome a = outcome({}, packed, config), b = outcome({}, apart, config);
  EXPECT_NEAR(a.loss, b.loss, 1e-5 * a.loss);
  EXPECT_LT(relative_distance(a, b), 1e-6);
}

TEST(Step, WhatStandsInPaddingDoesNotMatter) {
  OwnedBatch batch = packed_batch(3, 20, 61);
  const Outcome before = outcome({}, batch);
  for (size_t i = 0; i < batch.ids.size(); ++i)
    if (batch.segments[i] < 0) batch.ids[i] = 999999, batch.targets[i] = 5, batch.positions[i] = -3;
  EXPECT_TRUE(outcome({}, batch) == before);
}

TEST(Step, ABatchWithoutLossLeavesGradientsAlone) {
  OwnedBatch batch = packed_batch(2, 20, 61);
  std::fill(batch.targets.begin(), batch.targets.end(), -1);
  const Outcome o = outcome({}, batch);
  EXPECT_EQ(o.loss, 0);
  for (const float g : o.gradients) EXPECT_EQ(g, 0);
}

TEST(Step, EvaluationEqualsTrainingLossWithoutDropoutAndTouchesNothing) {
  const OwnedBatch batch = packed_batch(3, 20, 61);
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);
  fill(network, 3);
  network.add_lora(all_projections(3, 0.5f), 5);
  randomise_adapters(network, 6);
  network.set_trainable(model::TrainMethod::lora);
  const LossSum evaluated = network.evaluate(batch, {});
  for (const float g : all_gradients(network)) ASSERT_EQ(g, 0);
  const LossSum trained = network.forward_backward(batch, {});
  EXPECT_NE(evaluated.sum, trained.sum);
  EXPECT_EQ(network.evaluate(batch, {}).sum, evaluated.sum);
  EXPECT_EQ(evaluated.tokens, trained.tokens);
}

TEST(Lora, StartsAsTheBaseModelWithKaimingUniformA) {
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);
  fill(network, 3);
  const OwnedBatch batch = packed_batch(2, 20, 61);
  const double base = network.evaluate(batch, {}).sum;
  network.add_lora(all_projections(8), 5);
  EXPECT_EQ(network.evaluate(batch, {}).sum, base);
  for (const LoraTensors& m : network.lora()) {
    const float bound = 1 / std::sqrt(static_cast<float>(m.target.in));
    float largest = 0;
    for (const float a : m.a) largest = std::max(largest, std::abs(a));
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 0.9f * bound);
    for (const float b : m.b) EXPECT_EQ(b, 0);
  }
}

TEST(Lora, PatternsOverrideRankAndAlphaAsInPeft) {
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);
  options::Lora o = all_projections(4);
  o.rank_pattern = {
      {"layers.1.self_attn.q_proj", 2}, {"down_proj", 7}, {"proj", 99}};  // "proj" is no whole path element
  o.alpha_pattern = {{"layers\\.[02]\\.mlp\\.(gate|up)_proj", 1.5f}};
  network.add_lora(o, 1);
  for (const LoraTensors& m : network.lora()) {
    const std::string& name = m.target.module;
    const bool down = name.ends_with("down_proj");
    EXPECT_EQ(m.rank, name.ends_with("layers.1.self_attn.q_proj") ? 2 : down ? 7 : 4) << name;
    const bool patterned =
        (m.target.layer == 0 || m.target.layer == 2) && (name.ends_with("gate_proj") || name.ends_with("up_proj"));
    EXPECT_EQ(m.alpha, patterned ? 1.5f : 6.0f) << name;
    EXPECT_EQ(m.a.size(), static_cast<size_t>(m.rank * m.target.in));
  }
  o.rank_pattern = {{"(", 2}};
  EXPECT_THROW(network.add_lora(o, 1), Error);
}

TEST(Network, RefusesBadBatches) {
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);
  const auto rejects = [&](auto change) {
    OwnedBatch b = packed_batch(2, 20, 61);
    change(b);
    EXPECT_THROW(network.evaluate(b, {}), Error);
  };
  rejects([](OwnedBatch& b) { b.ids[3] = 61; });
  rejects([](OwnedBatch& b) { b.ids[3] = -1; });
  rejects([](OwnedBatch& b) { b.targets[3] = 61; });
  rejects([](OwnedBatch& b) { b.positions[3] = 1 << 20; });
  rejects([](OwnedBatch& b) { b.positions[3] = 128; });
  rejects([](OwnedBatch& b) { b.segments.pop_back(); });
}

TEST(Training, FullTrainingInBf16MemorisesThroughF32Masters) {
  const OwnedBatch batch = packed_batch(2, 20, 61);
  Device device(Bytes(0), 2);
  Network network(tiny_config(), device, model::WeightType::bf16);
  network.init_random(1);
  network.set_trainable(model::TrainMethod::full);
  AdamW optimizer(device, network.parameters(), {});
  const double before = network.evaluate(batch, {}).sum;
  for (int t = 1; t <= 60; ++t) {
    network.zero_gradients();
    const LossSum loss = network.forward_backward(batch, {.gradient_scale = 1.0f / 26});
    ASSERT_TRUE(std::isfinite(loss.sum));
    optimizer.step(t, 3e-3f, 1.0f, optimizer.gradient_norm());
    network.parameters_changed();
  }
  EXPECT_LT(network.evaluate(batch, {}).sum, 0.2 * before);
}

}  // namespace
}  // namespace mw::engine::test
