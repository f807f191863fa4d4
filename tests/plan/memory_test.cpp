// SPDX-License-Identifier: GPL-3.0-or-later
// The planner's formulas against what the engine's arena really held after training steps of many kinds.
#include "core/plan/memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/network.h"
#include "core/engine/optimizer.h"
#include "core/engine/sampler.h"
#include "tests/engine/families.h"

namespace mw::plan {
namespace {

using engine::Network;

model::Config small_config(int layers = 4, int vocab = 3000, int mlp = 520) {
  model::Config c;
  c.id = "small";
  c.hf_model_type = "gemma3_text";
  c.hf_architecture = "Gemma3ForCausalLM";
  c.vocab = vocab;
  c.dim = 160;
  c.sliding_window = 48;
  c.max_positions = 1024;
  c.qk_norm = true;
  c.attention_scale = 0.125f;
  for (int i = 0; i < layers; ++i) {
    model::Layer l;
    l.attention = i % 3 == 2 ? model::Attention::full : model::Attention::sliding;
    l.heads = 4;
    l.kv_heads = 2;
    l.head_dim = 48;
    l.mlp_dim = mlp;
    l.rope_theta = i % 3 == 2 ? 1e6f : 1e4f;
    c.layers.push_back(l);
  }
  return c;
}

struct Case {
  Method method = Method::lora;
  WeightType weights = WeightType::f32;
  Remat remat = Remat::none;
  int rank = 8, chunk = 64, rows = 4, len = 64, threads = 2, loss_per_row = 48;
  float dropout = 0;
  std::vector<std::string> targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
  std::vector<std::pair<std::string, int>> rank_pattern = {};
  int generate = 0;  // prompt 20 and the rest new
  int layers = 4;
  int vocab = 3000, mlp = 520;  // 3008 and 512: whole panels, packed where the processor can
  std::string family = "gemma3";
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Remat remat : {Remat::none, Remat::block, Remat::layer}) {
    all.push_back({.remat = remat});
    all.push_back({.remat = remat, .rank = 32, .chunk = 0});
    all.push_back({.weights = WeightType::bf16, .remat = remat, .rank = 4, .chunk = 16, .rows = 2, .len = 100});
    all.push_back({.method = Method::full, .remat = remat, .chunk = 128});
    all.push_back({.method = Method::full, .weights = WeightType::bf16, .remat = remat, .rows = 1, .len = 200});
    all.push_back(
        {.remat = remat, .rank = 16, .rows = 7, .len = 33, .loss_per_row = 5, .targets = {"q_proj", "v_proj"}});
    all.push_back({.remat = remat, .dropout = 0.1f, .layers = 6});
    all.push_back(
        {.remat = remat, .rank = 2, .targets = {"down_proj"}, .rank_pattern = {{"layers.3.mlp.down_proj", 64}}});
  }
  for (const int generate : {0, 100})
    all.push_back({.weights = WeightType::bf16, .rank = 16, .generate = generate, .vocab = 3008, .mlp = 512});
  all.push_back({.method = Method::full, .weights = WeightType::bf16, .vocab = 3008, .mlp = 512});
  all.push_back({.chunk = 1});
  all.push_back({.chunk = 100000, .threads = 1});
  all.push_back({.rows = 1, .len = 17, .loss_per_row = 1});
  all.push_back({.remat = Remat::layer, .rows = 2, .len = 64, .generate = 120, .layers = 6});
  all.push_back({.chunk = 0, .rows = 16, .generate = 90});
  for (const std::string& family : engine::test::families())
    for (const Remat remat : {Remat::none, Remat::block, Remat::layer}) {
      all.push_back({.remat = remat, .family = family});
      all.push_back({.remat = remat, .targets = {"q_proj"}, .generate = 110, .layers = 6, .family = family});
      all.push_back({.method = Method::full, .weights = WeightType::bf16, .remat = remat, .family = family});
      all.push_back({.weights = WeightType::bf16, .remat = remat, .vocab = 3008, .mlp = 512, .family = family});
    }
  return all;
}

// Ids, targets on the last `loss_per_row` positions of each row, positions and one segment per row.
struct Arrays {
  std::vector<int> ids, targets, positions, segments;
  explicit Arrays(const Case& c) {
    for (int r = 0; r < c.rows; ++r)
      for (int i = 0; i < c.len; ++i) {
        ids.push_back((r * 31 + i * 7) % 3000);
        targets.push_back(i >= c.len - c.loss_per_row ? (i * 13) % 3000 : -1);
        positions.push_back(i);
        segments.push_back(0);
      }
  }
};

MemoryUse measured(const model::Config& config, const Case& c, std::vector<LoraSize>* adapted) {
  engine::Device device(Bytes(0), c.threads);
  Network network(config, device, static_cast<engine::WeightType>(c.weights));
  network.init_random(1);
  if (c.method == Method::lora)
    network.add_lora({.rank = c.rank, .dropout = c.dropout, .targets = c.targets, .rank_pattern = c.rank_pattern}, 1);
  for (const engine::LoraModule& m : network.lora()) adapted->push_back({m.target.role, m.target.layer, m.rank});
  network.set_trainable(static_cast<engine::Method>(c.method));
  engine::AdamW optimizer(device, network.parameters(), {});
  const Arrays a(c);
  for (int step = 1; step <= (c.generate > 0 ? 3 : 2); ++step) {
    network.zero_gradients();
    network.forward_backward({.rows = c.rows,
                              .len = c.len,
                              .ids = a.ids,
                              .targets = a.targets,
                              .positions = a.positions,
                              .segments = a.segments},
                             {.remat = static_cast<engine::Remat>(c.remat), .loss_chunk = c.chunk});
    optimizer.step(step, 1e-3f, 1.0f, optimizer.gradient_norm());
    network.parameters_changed();
    if (c.generate > 0) {
      std::vector<int> prompt(20);
      std::iota(prompt.begin(), prompt.end(), 1);
      engine::Sampler(network).generate(prompt, {.max_new_tokens = c.generate - 20});
    }
  }
  return device.arena.use();
}

class MemoryOf : public testing::TestWithParam<Case> {};

TEST_P(MemoryOf, IsPredictedAsTheEngineMeasuresIt) {
  const Case& c = GetParam();
  const model::Config config = engine::test::as_family(small_config(c.layers, c.vocab, c.mlp), c.family);
  TrainShape shape{.method = c.method,
                   .weights = c.weights,
                   .bf16 = engine::packed_kernels() ? Bf16Math::packed : Bf16Math::widened,
                   .dropout = c.dropout > 0,
                   .remat = c.remat,
                   .tokens = c.rows * c.len,
                   .loss_tokens = c.rows * c.loss_per_row,
                   .longest = c.len,
                   .loss_chunk = c.chunk,
                   .threads = c.threads,
                   .generate_tokens = c.generate};
  const MemoryUse use = measured(config, c, &shape.lora);
  const MemoryPlan plan = predict_train_memory(config, shape);
  EXPECT_NEAR(plan.at_peak.total() / use.at_peak.total(), 1, 0.05)
      << "predicted " << to_text(plan.at_peak.total()) << ", measured " << to_text(use.at_peak.total());
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const auto name = to_string(static_cast<MemoryCategory>(i));
    const Bytes expected = use.category_peaks.bytes[i], predicted = plan.category_peaks.bytes[i];
    const double slack =
        std::max(0.10 * static_cast<double>(expected.value), expected.value > (1 << 20) ? 0.0 : 65536.0);
    EXPECT_NEAR(static_cast<double>(predicted.value), static_cast<double>(expected.value), slack) << name;
    const Bytes then = use.at_peak.bytes[i], said = plan.at_peak.bytes[i];
    EXPECT_NEAR(static_cast<double>(said.value), static_cast<double>(then.value),
                std::max(0.10 * static_cast<double>(then.value), 65536.0))
        << name << " at the peak";
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, MemoryOf, testing::ValuesIn(cases()));

TEST(PlanMemory, RematAndChunkingOrderAsTheyShould) {
  const model::Config config = small_config(8);
  TrainShape shape{.tokens = 512, .loss_tokens = 512, .longest = 128, .loss_chunk = 64, .threads = 2};
  for (int layer = 0; layer < 8; ++layer) shape.lora.push_back({model::Role::q_proj, layer, 8});
  const auto activations = [&](Remat remat) {
    shape.remat = remat;
    return predict_train_memory(config, shape).at_peak[MemoryCategory::activations];
  };
  EXPECT_GT(activations(Remat::none), activations(Remat::block));
  EXPECT_GT(activations(Remat::block), activations(Remat::layer));
  const Bytes chunked = predict_train_memory(config, shape).at_peak[MemoryCategory::logits];
  shape.loss_chunk = 0;
  EXPECT_NEAR(predict_train_memory(config, shape).at_peak[MemoryCategory::logits] / chunked, 8, 0.1);
}

TEST(PlanMemory, EveryGemma3OfTheCatalogueHasAPlan) {
  for (const char* id : {"gemma3-270m", "gemma3-1b", "gemma3-4b", "gemma3-12b", "gemma3-27b"}) {
    const model::Config config = model::catalogue(id);
    const TrainShape shape{.method = Method::full,
                           .weights = WeightType::bf16,
                           .tokens = 4096,
                           .loss_tokens = 4096,
                           .longest = 2048,
                           .threads = 2};
    const MemoryPlan plan = predict_train_memory(config, shape);
    const auto parameters = static_cast<double>(model::TensorInventory(config).parameters());
    EXPECT_NEAR(static_cast<double>(plan.at_peak[MemoryCategory::weights].value) / parameters, 2, 0.01) << id;
    EXPECT_NEAR(static_cast<double>(plan.at_peak[MemoryCategory::optimizer].value) / parameters, 12, 0.05) << id;
  }
}

TEST(PlanMemory, AShapeBeyondReasonIsAClearError) {
  const TrainShape shape{.tokens = 64, .loss_tokens = 64, .longest = 64};
  TrainShape huge = shape;
  huge.tokens = std::int64_t{1} << 60;
  EXPECT_THROW(predict_train_memory(small_config(), huge), Error);
  huge.tokens = -1;
  EXPECT_THROW(predict_train_memory(small_config(), huge), Error);
}

}  // namespace
}  // namespace mw::plan
