// SPDX-License-Identifier: GPL-3.0-or-later
// Predicted memory of sampling and scoring against what the engine's arena held.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/catalogue.h"
#include "tests/plan/engine_runs.h"

namespace mw::plan {
namespace {

using Run = local::InferenceRun;
using enum Run::Work;

class InferenceMemory : public testing::TestWithParam<Run> {};

TEST_P(InferenceMemory, PredictionMatchesTheEngine) {
  const model::Config config =
      local::small_config({.layers = 3, .vocab = 5024, .dim = 96, .mlp = 256, .head_dim = 32, .window = 40});
  const auto [measured, predicted] = run(config, GetParam());
  for (size_t i = 0; i < kMemoryCategories; ++i)
    EXPECT_EQ(predicted.at_peak.bytes[i].value, measured.at_peak.bytes[i].value)
        << to_string(static_cast<MemoryCategory>(i));
}

constexpr auto kBf16 = model::WeightType::bf16, kInt8 = model::WeightType::int8;
INSTANTIATE_TEST_SUITE_P(
    Plan, InferenceMemory,
    testing::Values(Run{.rows = 1, .len = 30, .new_tokens = 50}, Run{.rows = 9, .len = 20, .new_tokens = 300},
                    Run{.rows = 70, .len = 100, .new_tokens = 4, .weights = kBf16, .rank = 8},
                    Run{.rows = 1, .len = 5, .new_tokens = 4, .weights = kBf16},
                    Run{.rows = 3, .len = 40, .new_tokens = 4, .weights = kInt8, .rank = 8},
                    Run{.rows = 2, .len = 3000, .new_tokens = 2, .rank = 8},
                    Run{.rows = 2100, .len = 1, .new_tokens = 2},
                    Run{.work = score, .rows = 3, .len = 100, .chunk = 32, .top_k = 8, .weights = kInt8},
                    Run{.work = score, .rows = 3, .len = 100},
                    Run{.work = score, .rows = 2, .len = 3, .weights = kBf16},
                    Run{.work = score, .rows = 30, .len = 100, .top_k = 16, .weights = kBf16},
                    Run{.work = score, .rows = 3, .len = 100, .chunk = 32, .top_k = 8},
                    Run{.work = score, .rows = 30, .len = 100, .chunk = 64, .top_k = 128, .weights = kBf16, .rank = 8},
                    Run{.work = score, .rows = 2, .len = 20, .chunk = 1000, .top_k = 1}));

TEST(InferenceMemory, LogitsGrowWithTheBatchUnlessChunked) {
  const model::Config config = model::catalogue_config("gemma3-1b");
  const InferenceModel model{.weights = model::WeightType::bf16};
  const auto logits = [&](std::int64_t rows, int chunk) {
    return predict_memory(config, model, engine::ScoringWork{rows, 1024, chunk, 0}).at_peak[MemoryCategory::logits];
  };
  EXPECT_NEAR(logits(12, 0) / logits(1, 0), 12, 0.01);
  EXPECT_NEAR(logits(12, 0) / Bytes(12LL * 1024 * 262144 * 4), 1, 0.01) << "12.9 GB, which is more than a v5e has left";
  EXPECT_NEAR(logits(136, 64) / logits(1, 64), 1, 0.01);
  EXPECT_THROW(predict_memory(config, model, engine::ScoringWork{std::int64_t{1} << 40, 1024, 0, 0}), Error);
  EXPECT_THROW(predict_memory(config, model, engine::GenerationWork{0, 16, 1}), Error);
}

}  // namespace
}  // namespace mw::plan
