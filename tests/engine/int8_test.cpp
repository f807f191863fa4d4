// SPDX-License-Identifier: GPL-3.0-or-later
// A network of int8 weights beside the same one in f32.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/engine/generate/paged_decoder.h"
#include "core/engine/generate/sampler.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine {
namespace {

model::Config config() {
  model::Config c = test::tiny_config();
  c.vocab = 1024, c.dim = 256;
  for (model::Layer& l : c.layers) l.heads = 4, l.kv_heads = 2, l.head_dim = 32, l.mlp_dim = 512;
  return c;
}

std::vector<float> logits_of(model::WeightType type, double* weight_bytes) {
  Device device(Bytes(0), 2);
  Network network(config(), device, type);
  test::fill(network, 5, 0.1f);
  const test::OwnedBatch batch = test::packed_batch(2, 40, 1024);
  std::vector<float> out(80 * 1024);
  network.logits(batch, out);
  *weight_bytes = static_cast<double>(device.arena.use().now[MemoryCategory::weights].value);
  return out;
}

TEST(Int8, LogitsStayCloseToThoseOfF32InLessMemory) {
  double f32_bytes = 0, bf16_bytes = 0, int8_bytes = 0;
  const std::vector<float> exact = logits_of(model::WeightType::f32, &f32_bytes);
  const std::vector<float> half = logits_of(model::WeightType::bf16, &bf16_bytes);
  const std::vector<float> bytes = logits_of(model::WeightType::int8, &int8_bytes);
  double difference = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(bytes[i]) - static_cast<double>(exact[i]), 2);
    size += std::pow(static_cast<double>(exact[i]), 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 0.06);
  EXPECT_GT(difference, 0);
  EXPECT_LT(int8_bytes, 0.65 * bf16_bytes);
}

// Every kind of layer, its matrices in whole panels. All experts: a rounded score may choose another.
model::Config panel_family(const std::string& name) {
  model::Config c = test::tiny_config();
  c.vocab = 96, c.dim = 64;
  for (model::Layer& l : c.layers) l.heads = 4, l.kv_heads = 2, l.head_dim = 16, l.mlp_dim = 96;
  c = test::as_family(c, name);
  if (c.ple_dim > 0) c.ple_dim = 32;
  if (c.experts > 0) c.expert_dim = 32, c.experts_per_token = c.experts;
  return c;
}

WeightSource normal_weights(float scale) {
  return {.f32 =
              [scale](size_t index, std::int64_t first, std::span<float> out) {
                const Rng rng{8, index};
                for (size_t i = 0; i < out.size(); ++i)
                  out[i] = scale * rng.normal_at(static_cast<std::uint64_t>(first) + i);
              },
          .bf16 = {}};
}

test::OwnedBatch one_row(int tokens, int vocab) {
  const auto n = static_cast<size_t>(tokens);
  test::OwnedBatch b{
      1, tokens, std::vector<int>(n), std::vector<int>(n, -1), std::vector<int>(n), std::vector<int>(n, 0)};
  for (size_t i = 0; i < n; ++i) b.ids[i] = static_cast<int>(7 * i + 3) % vocab, b.positions[i] = static_cast<int>(i);
  return b;
}

class Int8Families : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, Int8Families, ::testing::ValuesIn(test::families()), test::family_name);

TEST_P(Int8Families, LogitsStayCloseToF32AndDecodingSaysWhatFullForwardsSay) {
  const model::Config config = panel_family(GetParam());
  const test::OwnedBatch b = one_row(27, config.vocab);
  const auto vocab = static_cast<size_t>(config.vocab);
  std::vector<float> exact(27 * vocab), bytes(27 * vocab);
  Device device(Bytes(0), 2);
  Transformer f32(config, device, model::WeightType::f32, NetworkUse::training),
      net(config, device, model::WeightType::int8, NetworkUse::training);
  f32.weights.load(normal_weights(0.1f), {});
  net.weights.load(normal_weights(0.1f), {});
  all_logits(f32, b, {}, exact);
  all_logits(net, b, {}, bytes);
  double difference = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(bytes[i]) - static_cast<double>(exact[i]), 2);
    size += std::pow(static_cast<double>(exact[i]), 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 0.1);
  EXPECT_GT(difference, 0);
  SequenceDecoder decoder(net, std::vector<int>{27});
  for (size_t end = 4; end <= 27; ++end) {
    const size_t first = end == 4 ? 0 : end - 1;
    const Continuation step{0, std::span<const int>(b.ids).subspan(first, end - first)};
    const std::span<const float> logits = decoder.advance({&step, 1});
    for (size_t i = 0; i < vocab; ++i)
      ASSERT_NEAR(logits[i], bytes[(end - 1) * vocab + i], test::tolerance(model::WeightType::int8, 2e-5f, 6e-2f))
          << "token " << end;
  }
}

// What a row answers at temperature 0 is bitwise its own affair: alone, and in a full batch, adapters too.
TEST_P(Int8Families, ARowAnswersTheSameAloneAndInAFullBatch) {
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16, model::WeightType::int8}) {
    const model::Config config = panel_family(GetParam());
    Device device(Bytes(0), 2);
    Network network(config, device, type);
    network.load(normal_weights(0.15f));
    network.add_lora(test::all_projections(), 5);
    test::randomise_adapters(network, 6);
    std::vector<std::vector<int>> prompts;
    for (int row = 0; row < kMaxSkinnyRows; ++row) prompts.push_back({5 * row + 2});
    const auto together = Sampler(network).generate_batch(prompts, {.max_new_tokens = 12});
    for (size_t row = 0; row < prompts.size(); row += 3)
      EXPECT_EQ(together[row], Sampler(network).generate(prompts[row], {.max_new_tokens = 12})) << "row " << row;
    EXPECT_EQ(together, Sampler(network).generate_batch(prompts, {.max_new_tokens = 12})) << "again";
  }
}

TEST(Int8, CannotBeTrained) {
  Device device(Bytes(0), 1);
  Network network(config(), device, model::WeightType::int8);
  network.add_lora(test::all_projections(), 1);
  EXPECT_THROW(network.set_trainable(model::TrainMethod::lora), Error);
}

}  // namespace
}  // namespace mw::engine
