// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/activations.h"

#include <gtest/gtest.h>

#include "core/mesh/layout/layout.h"
#include "requests.h"

namespace mw::plan {
namespace {

constexpr auto kPlain = model::NormForm::plain_w;

struct Shape {
  const char* name;
  int dim, mlp, heads, kv_heads, head_dim;
  bool qk_norm;
  model::NormForm norm;
  double copies;  // of a [tokens, width] bf16 array that one layer keeps, as measured
};

// One layer of full training in eager PyTorch with fused attention (reference 5.4, stas00/ml-engineering).
class PublishedWorkingSet : public testing::TestWithParam<Shape> {};

TEST_P(PublishedWorkingSet, EqualsTheSumOfTheLayersBuffers) {
  const Shape& s = GetParam();
  Request r = request("llama3.1-8b", "1xh100", model::Stack::torchtune, {{"fsdp", 1}});
  r.method = model::TrainMethod::full;
  r.model.dim = s.dim;
  r.model.qk_norm = s.qk_norm;
  r.model.norm_form = s.norm;
  for (model::Layer& l : r.model.layers) {
    l.mlp_dim = s.mlp;
    l.heads = s.heads;
    l.kv_heads = s.kv_heads;
    l.head_dim = s.head_dim;
  }
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  ASSERT_EQ(m.kinds.size(), 1u);
  const double copies = layer_memory(m, m.kinds[0], 4096).kept() / (2.0 * s.dim);
  EXPECT_NEAR(copies / s.copies, 1, 0.06) << s.name << ": " << copies << " for " << s.copies;
}

INSTANTIATE_TEST_SUITE_P(Measured, PublishedWorkingSet,
                         testing::Values(Shape{"SmolLM2-360M", 960, 2560, 15, 5, 64, false, kPlain, 24},
                                         Shape{"Llama-3.1-8B", 4096, 14336, 32, 8, 128, false, kPlain, 28},
                                         Shape{"Mistral-7B", 4096, 14336, 32, 8, 128, false, kPlain, 28},
                                         Shape{"Qwen3-8B", 4096, 12288, 32, 8, 128, true, kPlain, 29.8},
                                         Shape{"Qwen3-4B", 2560, 9728, 32, 8, 128, true, kPlain, 38},
                                         Shape{"Gemma-1.1-2B", 2048, 16384, 8, 1, 256, false,
                                               model::NormForm::one_plus_w, 48}));

// peft/tuners/lora/dora.py: the gradient of the magnitudes needs the outputs of W and of B, and each pass makes the
// identity (f32), B A, its scaled copy and the sum with W (bf16). Sizes of Gemma 3 1B.
TEST(LayerMemory, DoraKeepsTwoOutputsOfEachProjection) {
  Request r = request("gemma3-1b", "2xh100", model::Stack::trl_fsdp, {{"fsdp", 2}});
  const LocalModel lora = local_model(r, mesh::ShardingUse::training);
  r.lora.dora = true;
  const LocalModel dora = local_model(r, mesh::ShardingUse::training);
  constexpr double kOutputs = 1024 + 2 * 256 + 1152 + 2 * 6912 + 1152;
  EXPECT_DOUBLE_EQ(layer_memory(dora, dora.kinds[0], 512).kept() - layer_memory(lora, lora.kinds[0], 512).kept(),
                   2 * 2 * kOutputs);
  EXPECT_DOUBLE_EQ(dora.adapters(model::DType::f32).total - lora.adapters(model::DType::f32).total, 26 * kOutputs);
  EXPECT_DOUBLE_EQ(row_norms(dora, dora.kinds[0]).held, 4.0 * 6912 * 6912 + 3 * 2.0 * 6912 * 1152);
  EXPECT_EQ(row_norms(lora, lora.kinds[0]).held, 0);
}

TEST(LayerMemory, OnlyMaterialisedScoresGrowWithTheRow) {
  Request r = lora_31b_v5p();
  const LocalModel scores = local_model(r, mesh::ShardingUse::training);
  const double shorter = layer_memory(scores, scores.kinds[0], 2048).kept();
  EXPECT_GT(layer_memory(scores, scores.kinds[0], 4096).kept(), shorter);
  Request f = lora_31b_v5p();
  f.profile.attention = StackProfile::Attention::fused;
  const LocalModel fused = local_model(f, mesh::ShardingUse::training);
  EXPECT_DOUBLE_EQ(layer_memory(fused, fused.kinds[0], 2048).kept(), layer_memory(fused, fused.kinds[0], 4096).kept());
}

TEST(AttendedKeys, WholeRowIfMaterialisedElseCausalWindow) {
  Request r = lora_31b_v5p();
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  ASSERT_EQ(m.kinds[0].name, "sliding layers");
  ASSERT_EQ(m.kinds[1].name, "global layers");
  EXPECT_DOUBLE_EQ(attended_keys(m, m.kinds[0], 4096), 4096);
  Request f = lora_31b_v5p();
  f.profile.attention = StackProfile::Attention::fused;
  const LocalModel fused = local_model(f, mesh::ShardingUse::training);
  double keys = 0;
  for (int i = 0; i < 4096; ++i) keys += std::min(i + 1, 1024);
  EXPECT_NEAR(attended_keys(fused, fused.kinds[0], 4096), keys / 4096, 1);
  EXPECT_DOUBLE_EQ(attended_keys(fused, fused.kinds[1], 4096), 2048);
}

TEST(LocalModel, HasOneKindPerKindOfLayerAndEveryParameter) {
  const Request r = lora_31b_v5p();
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  ASSERT_EQ(m.kinds.size(), 2u);
  EXPECT_EQ(m.kinds[0].count, 50);
  EXPECT_EQ(m.kinds[1].count, 10);
  EXPECT_EQ(m.parameters, 30'697'345'280);
  EXPECT_EQ(m.adapters(model::DType::int8).total, 64 * 7'651'840LL - 64 * 50 * 5376LL);  // Tunix: one A for K and V
  EXPECT_DOUBLE_EQ(m.kinds[0].heads, 8);
  EXPECT_DOUBLE_EQ(m.kinds[1].kv_heads, 1);
  EXPECT_DOUBLE_EQ(m.width, 5376 / 4);
}

TEST(LocalModel, RulesForSingleLayersKeepTheTotal) {
  Request r = lora_31b_v5p();
  const TensorBytes all = local_model(r, mesh::ShardingUse::training).weights(model::DType::bf16);
  r.rules.overrides.push_back({R"(layers\.3\.q_proj)", mesh::parse_spec("(-, -, -)")});
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  const TensorBytes with = m.weights(model::DType::bf16);
  EXPECT_EQ(with.total, all.total);
  EXPECT_EQ(with.elements - all.elements, 32.0 * 5376 * 256 * 3 / 4);
}

}  // namespace
}  // namespace mw::plan
