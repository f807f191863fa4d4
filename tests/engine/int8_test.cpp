// SPDX-License-Identifier: GPL-3.0-or-later
// A network of int8 weights beside the same one in f32.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine {
namespace {

model::Config config() {
  model::Config c = test::tiny_config();
  c.vocab = 1024, c.dim = 256;
  for (model::Layer& l : c.layers) l.heads = 4, l.kv_heads = 2, l.head_dim = 32, l.mlp_dim = 512;
  return c;
}

std::vector<float> logits_of(WeightType type, double* weight_bytes) {
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
  const std::vector<float> exact = logits_of(WeightType::f32, &f32_bytes);
  const std::vector<float> half = logits_of(WeightType::bf16, &bf16_bytes);
  const std::vector<float> bytes = logits_of(WeightType::int8, &int8_bytes);
  double difference = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(bytes[i]) - static_cast<double>(exact[i]), 2);
    size += std::pow(static_cast<double>(exact[i]), 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 0.06);
  EXPECT_GT(difference, 0);
  EXPECT_LT(int8_bytes, 0.65 * bf16_bytes);
}

TEST(Int8, CannotBeTrained) {
  Device device(Bytes(0), 1);
  Network network(config(), device, WeightType::int8);
  network.add_lora(test::all_projections(), 1);
  EXPECT_THROW(network.set_trainable(Method::lora), Error);
}

}  // namespace
}  // namespace mw::engine
