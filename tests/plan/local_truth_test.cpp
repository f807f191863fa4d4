// SPDX-License-Identifier: GPL-3.0-or-later
// Local truth: for real runs of the engine on this processor, of every architecture and kind, the predicted ledger is
// within 5 % of the measured one in total and in every category that holds more than 1 MB.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <variant>

#include "tests/engine/families.h"
#include "tests/plan/engine_runs.h"

namespace mw::plan {
namespace {

using Train = local::TrainRun;
using Inference = local::InferenceRun;

struct Row {
  std::string family;
  std::variant<Train, Inference> run;
  local::Sizes sizes;
};

// Large enough that weights, gradients, activations, logits and workspace each pass 1 MB; whole panels.
constexpr local::Sizes kWide{.vocab = 4096, .dim = 192, .mlp = 640, .head_dim = 48, .window = 64};
constexpr local::Sizes kFar{.vocab = 4096, .dim = 192, .mlp = 640, .head_dim = 64, .window = 1000};
constexpr local::Sizes kOdd{.layers = 5, .vocab = 4099, .dim = 186, .mlp = 630, .head_dim = 46, .window = 50};

std::vector<Row> table() {
  constexpr auto none = model::Remat::none, block = model::Remat::block, layer = model::Remat::layer;
  constexpr auto f32 = model::WeightType::f32, bf16 = model::WeightType::bf16, int8 = model::WeightType::int8;
  constexpr auto full = model::TrainMethod::full;
  using enum Inference::Work;
  std::vector<Row> rows;
  const auto add = [&](const std::string& family, std::variant<Train, Inference> run,
                       const local::Sizes& sizes = kWide) {
    rows.push_back({family, std::move(run), sizes});
  };
  for (const std::string& family : engine::test::families()) {
    add(family, Train{.remat = none, .rank = 32, .chunk = 128, .rows = 3, .len = 96, .loss_per_row = 96});
    add(family, Train{.weights = bf16, .remat = layer, .rank = 48, .chunk = 0, .rows = 6, .len = 96, .threads = 1});
    add(family, Train{.method = full, .weights = bf16, .remat = block, .rows = 2, .len = 160, .loss_per_row = 150});
    add(family, Train{.weights = bf16, .rank = 40, .rows = 1, .len = 300, .prompt = 300, .generate = 330}, kFar);
    add(family, Train{.remat = block, .rank = 24, .rows = 4, .len = 80, .dropout = 0.1f}, kOdd);
    // A small step between a large evaluation and a long prompt, and the other way round.
    add(family, Train{.remat = layer,
                      .rows = 1,
                      .len = 40,
                      .loss_per_row = 30,
                      .targets = {"down_proj"},
                      .eval_rows = 8,
                      .eval_len = 96});
    add(family, Train{.remat = layer,
                      .rows = 1,
                      .len = 40,
                      .loss_per_row = 30,
                      .eval_rows = 2,
                      .eval_len = 64,
                      .prompt = 700,
                      .generate = 720});
    add(family,
        Train{.weights = bf16, .rows = 4, .len = 96, .eval_rows = 2, .eval_len = 120, .prompt = 30, .generate = 900});
    add(family, Inference{.work = generate, .rows = 12, .len = 40, .new_tokens = 30, .weights = bf16, .rank = 64});
    add(family, Inference{.work = generate, .rows = 4, .len = 300, .new_tokens = 3, .weights = int8}, kOdd);
    add(family, Inference{.work = score, .rows = 20, .len = 64, .chunk = 256, .top_k = 128, .weights = f32});
    add(family, Inference{.work = score, .rows = 3, .len = 100, .weights = int8});
    add(family, Inference{.work = serve, .rows = 20, .len = 200, .chunk = 150, .weights = bf16, .rank = 24}, kFar);
    add(family, Inference{.work = serve, .rows = 24, .len = 300, .chunk = 400, .weights = f32}, kOdd);
  }
  // Each run with every third family: all combinations take minutes on two cores.
  const size_t runs = rows.size() / engine::test::families().size();
  std::vector<Row> third;
  for (size_t i = 0; i < rows.size(); ++i)
    if ((i / runs + i) % 3 == 0) third.push_back(std::move(rows[i]));
  rows = std::move(third);
  // What depends on no architecture.
  add("gemma3", Train{.method = full, .remat = layer, .chunk = 200, .rows = 1, .len = 400, .loss_per_row = 300});
  add("gemma3", Train{.rank = 64, .rows = 8, .len = 32, .targets = {"q_proj", "v_proj"}});
  add("gemma3", Train{.remat = layer, .rank = 16, .rows = 1, .len = 2100, .threads = 4, .loss_per_row = 2});
  add("gemma2", Train{.weights = bf16, .rank = 16, .rows = 1, .len = 1500, .threads = 4, .targets = {"down_proj"}});
  add("gemma3", Inference{.work = generate, .rows = 1, .len = 2, .new_tokens = 300, .threads = 1});
  add("gemma3", Inference{.work = generate, .rows = 2100, .len = 1, .new_tokens = 2});
  add("gemma3", Inference{.work = score, .rows = 5, .len = 700, .chunk = 64, .weights = bf16, .rank = 128});
  return rows;
}

struct Worst {
  double error = 0;
  std::string what = "none";
};

TEST(LocalTruth, EveryCategoryAboveOneMegabyteIsPredictedWithinFivePercent) {
  constexpr double kMegabyte = 1e6, kTolerance = 0.05;
  std::array<int, kMemoryCategories> compared{};
  Worst worst, worst_total;
  const std::vector<Row> rows = table();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::string name = "row " + std::to_string(i) + ", " + row.family;
    const model::Config config = local::small_config(row.sizes, row.family);
    const auto [measured, predicted] = std::visit([&](const auto& r) { return local::run(config, r); }, row.run);
    const auto compare = [&](Bytes said, Bytes was, const std::string& what, Worst& most) {
      const double error = std::abs(said / was - 1);
      EXPECT_LE(error, kTolerance) << name << ", " << what << ": predicted " << to_text(said) << ", measured "
                                   << to_text(was);
      if (error > most.error) most = {error, name + ", " + what};
    };
    compare(predicted.at_peak.total(), measured.at_peak.total(), "total", worst_total);
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      const auto said = predicted.category_peaks.bytes[c], was = measured.category_peaks.bytes[c];
      const std::string what(to_string(static_cast<MemoryCategory>(c)));
      if (static_cast<double>(was.value) > kMegabyte) {
        compare(said, was, what, worst);
        ++compared[c];
      } else {
        EXPECT_LE(static_cast<double>(said.value), (1 + kTolerance) * kMegabyte) << name << ", " << what;
      }
    }
  }
  std::printf("%zu runs; worst category %.2f %% (%s), worst total %.2f %% (%s)\n", rows.size(), 100 * worst.error,
              worst.what.c_str(), 100 * worst_total.error, worst_total.what.c_str());
  EXPECT_GE(rows.size(), 30u);
  for (const MemoryCategory c :
       {MemoryCategory::weights, MemoryCategory::adapters, MemoryCategory::gradients, MemoryCategory::optimizer,
        MemoryCategory::activations, MemoryCategory::logits, MemoryCategory::kv_cache, MemoryCategory::workspace})
    EXPECT_GE(compared[static_cast<size_t>(c)], 5) << to_string(c) << " was hardly ever large enough to be compared";
}

}  // namespace
}  // namespace mw::plan
