// SPDX-License-Identifier: GPL-3.0-or-later
// The planner's formulas against what the engine's arena really held after training steps of many kinds.
#include "core/plan/prediction/memory.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/catalogue.h"
#include "tests/engine/families.h"
#include "tests/plan/engine_runs.h"

namespace mw::plan {
namespace {

using local::small_config;

struct Case {
  local::TrainRun run = {};
  local::Sizes sizes = {};
  std::string family = "gemma3";
};

constexpr local::Sizes kPanels{.vocab = 3008, .mlp = 512};  // whole panels, packed where the processor can
constexpr local::Sizes kSixLayers{.layers = 6};

std::vector<Case> cases() {
  constexpr auto bf16 = model::WeightType::bf16;
  std::vector<Case> all;
  const auto add = [&](const local::TrainRun& run, const local::Sizes& sizes = {},
                       const std::string& family = "gemma3") {
    all.push_back({run, sizes, family});
  };
  for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer}) {
    add({.remat = remat});
    add({.remat = remat, .rank = 32, .chunk = 0});
    add({.weights = bf16, .remat = remat, .rank = 4, .chunk = 16, .rows = 2, .len = 100});
    add({.method = model::TrainMethod::full, .remat = remat, .chunk = 128});
    add({.method = model::TrainMethod::full, .weights = bf16, .remat = remat, .rows = 1, .len = 200});
    add({.remat = remat, .rank = 16, .rows = 7, .len = 33, .loss_per_row = 5, .targets = {"q_proj", "v_proj"}});
    add({.remat = remat, .dropout = 0.1f}, kSixLayers);
    add({.remat = remat, .rank = 2, .targets = {"down_proj"}, .rank_pattern = {{"layers.3.mlp.down_proj", 64}}});
  }
  for (const int generate : {0, 100}) add({.weights = bf16, .rank = 16, .generate = generate}, kPanels);
  add({.method = model::TrainMethod::full, .weights = bf16}, kPanels);
  add({.chunk = 1});
  add({.chunk = 100000, .threads = 1});
  add({.rows = 1, .len = 17, .loss_per_row = 1});
  add({.remat = model::Remat::layer, .rows = 2, .len = 64, .generate = 120}, kSixLayers);
  add({.chunk = 0, .rows = 16, .generate = 90});
  // A prompt that is longer than a step: the KV cache comes before the step's activations go.
  add({.rows = 1, .len = 40, .loss_per_row = 30, .prompt = 60, .generate = 80});
  for (const std::string& family : engine::test::families())
    for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer}) {
      add({.remat = remat, .targets = {"q_proj"}, .prompt = 64, .generate = 80}, kSixLayers, family);
      add({.method = model::TrainMethod::full, .weights = bf16, .remat = remat}, {}, family);
    }
  return all;
}

class MemoryOf : public testing::TestWithParam<Case> {};

TEST_P(MemoryOf, PredictionMatchesTheEngine) {
  const Case& c = GetParam();
  const auto [measured, predicted] = run(small_config(c.sizes, c.family), c.run);
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const std::string_view category = to_string(static_cast<MemoryCategory>(i));
    EXPECT_EQ(predicted.category_peaks.bytes[i].value, measured.category_peaks.bytes[i].value) << category;
    EXPECT_EQ(predicted.at_peak.bytes[i].value, measured.at_peak.bytes[i].value) << category << " at the peak";
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, MemoryOf, testing::ValuesIn(cases()));

TEST(PlanMemory, RematAndChunkingReduceMemory) {
  const model::Config config = small_config({.layers = 8});
  TrainShape shape{.tokens = 512, .loss_tokens = 512, .longest = 128, .loss_chunk = 64, .threads = 2};
  for (int layer = 0; layer < 8; ++layer) shape.lora.push_back({model::Role::q_proj, layer, 8});
  const auto activations = [&](model::Remat remat) {
    shape.remat = remat;
    return predict_train_memory(config, shape).at_peak[MemoryCategory::activations];
  };
  EXPECT_GT(activations(model::Remat::none), activations(model::Remat::block));
  EXPECT_GT(activations(model::Remat::block), activations(model::Remat::layer));
  const Bytes chunked = predict_train_memory(config, shape).at_peak[MemoryCategory::logits];
  shape.loss_chunk = 0;
  EXPECT_NEAR(predict_train_memory(config, shape).at_peak[MemoryCategory::logits] / chunked, 8, 0.1);
}

TEST(PlanMemory, PlansEveryGemma3OfTheCatalogue) {
  for (const char* id : {"gemma3-270m", "gemma3-1b", "gemma3-4b", "gemma3-12b", "gemma3-27b"}) {
    const model::Config config = model::catalogue_config(id);
    const TrainShape shape{.method = model::TrainMethod::full,
                           .weights = model::WeightType::bf16,
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

TEST(PlanMemory, RejectsSizesOutOfRange) {
  const TrainShape shape{.tokens = 64, .loss_tokens = 64, .longest = 64};
  TrainShape huge = shape;
  huge.tokens = std::int64_t{1} << 60;
  EXPECT_THROW(predict_train_memory(small_config(), huge), Error);
  huge.tokens = -1;
  EXPECT_THROW(predict_train_memory(small_config(), huge), Error);
}

}  // namespace
}  // namespace mw::plan
