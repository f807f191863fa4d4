// SPDX-License-Identifier: GPL-3.0-or-later
// Predicted memory of sampling and scoring against what the engine's arena held.
#include <gtest/gtest.h>

#include <numeric>

#include "core/base/error.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/sampler.h"
#include "core/engine/score.h"
#include "core/plan/memory.h"

namespace mw::plan {
namespace {

model::Config wide_config() {
  model::Config c;
  c.id = "wide";
  c.hf_model_type = "gemma3_text";
  c.hf_architecture = "Gemma3ForCausalLM";
  c.vocab = 5024, c.dim = 96;
  c.sliding_window = 40, c.max_positions = 4096;
  c.qk_norm = true;
  c.attention_scale = 0.2f;
  for (int i = 0; i < 3; ++i) {
    model::Layer l;
    l.attention = i == 2 ? model::Attention::full : model::Attention::sliding;
    l.heads = 4, l.kv_heads = 2, l.head_dim = 32, l.mlp_dim = 256;
    l.rope_theta = i == 2 ? 1e6f : 1e4f;
    c.layers.push_back(l);
  }
  return c;
}

enum class Work { generate, full, chunked };
struct Case {
  Work work;
  int rows, len, new_tokens = 0, chunk = 0, top_k = 0;
  WeightType weights = WeightType::f32;
  bool lora = false;
};

class InferenceMemory : public testing::TestWithParam<Case> {};

TEST_P(InferenceMemory, IsPredictedAsTheEngineMeasuresIt) {
  const Case& c = GetParam();
  const model::Config config = wide_config();
  engine::Device device(Bytes(0), 2);
  engine::Network network(config, device, static_cast<engine::WeightType>(c.weights));
  network.init_random(1);
  InferenceModel model{.weights = c.weights,
                       .bf16 = engine::packed_kernels() ? Bf16Math::packed : Bf16Math::widened,
                       .lora = {},
                       .threads = 2};
  if (c.lora) {
    network.add_lora({.rank = 8, .targets = {"q_proj", "down_proj"}}, 1);
    for (const engine::LoraModule& m : network.lora()) model.lora.push_back({m.target.role, m.target.layer, m.rank});
  }
  MemoryPlan plan;
  for (int twice = 0; twice < 2; ++twice) {
    network.release_step_memory();
    device.arena.reset_peak();
    if (c.work == Work::generate) {
      std::vector<int> prompt(static_cast<size_t>(c.len));
      std::iota(prompt.begin(), prompt.end(), 1);
      const std::vector<std::vector<int>> prompts(static_cast<size_t>(c.rows), prompt);
      engine::Sampler(network).generate_batch(prompts, {.max_new_tokens = c.new_tokens});
      plan = predict_memory(config, model, Generation{c.rows, c.len, c.new_tokens});
    } else {
      std::vector<int> ids(static_cast<size_t>(c.rows * c.len), 7), positions, segments(ids.size(), 0);
      for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int>(i) % c.len);
      engine::Scorer(network).score({c.rows, c.len, ids, ids, positions, segments},
                                    {.chunk = c.chunk, .top_k = c.top_k});
      plan = predict_memory(config, model, Scoring{c.rows, c.len, c.chunk, c.top_k});
    }
  }
  const MemoryUse use = device.arena.use();
  EXPECT_NEAR(plan.at_peak.total() / use.at_peak.total(), 1, 0.01)
      << "predicted " << to_text(plan.at_peak.total()) << ", measured " << to_text(use.at_peak.total());
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const auto measured = static_cast<double>(use.at_peak.bytes[i].value);
    EXPECT_NEAR(static_cast<double>(plan.at_peak.bytes[i].value), measured, std::max(0.02 * measured, 4096.0))
        << to_string(static_cast<MemoryCategory>(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, InferenceMemory,
                         testing::Values(Case{Work::generate, 1, 30, 50}, Case{Work::generate, 9, 20, 300},
                                         Case{Work::generate, 70, 100, 4, 0, 0, WeightType::bf16, true},
                                         Case{Work::generate, 3, 40, 4, 0, 0, WeightType::int8, true},
                                         Case{Work::chunked, 3, 100, 0, 32, 8, WeightType::int8},
                                         Case{Work::generate, 2, 3000, 2, 0, 0, WeightType::f32, true},
                                         Case{Work::full, 3, 100},
                                         Case{Work::full, 30, 100, 0, 0, 16, WeightType::bf16},
                                         Case{Work::chunked, 3, 100, 0, 32, 8},
                                         Case{Work::chunked, 30, 100, 0, 64, 128, WeightType::bf16, true},
                                         Case{Work::chunked, 2, 20, 0, 1000, 1}));

TEST(InferenceMemory, LogitsGrowWithTheBatchUnlessChunked) {
  const model::Config config = model::catalogue("gemma3-1b");
  const InferenceModel model{.weights = WeightType::bf16};
  const auto logits = [&](std::int64_t rows, int chunk) {
    return predict_memory(config, model, Scoring{rows, 1024, chunk, 0}).at_peak[MemoryCategory::logits];
  };
  EXPECT_NEAR(logits(12, 0) / logits(1, 0), 12, 0.01);
  EXPECT_NEAR(logits(12, 0) / Bytes(12LL * 1024 * 262144 * 4), 1, 0.01) << "12.9 GB, which is more than a v5e has left";
  EXPECT_NEAR(logits(136, 64) / logits(1, 64), 1, 0.01);
  EXPECT_THROW(predict_memory(config, model, Scoring{std::int64_t{1} << 40, 1024, 0, 0}), Error);
  EXPECT_THROW(predict_memory(config, model, Generation{0, 16, 1}), Error);
}

}  // namespace
}  // namespace mw::plan
