// SPDX-License-Identifier: GPL-3.0-or-later
// The benchmark of a machine with a small shape: its figures, progress, stop and errors.
#include "core/jobs/machine_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/audit/calibrating.h"
#include "core/base/error.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/jobs/benchmark_run.h"
#include "core/model/catalogue.h"
#include "core/plan/calibration/plan_context.h"
#include "tests/base/scratch.h"
#include "tests/engine/tiny_model.h"

namespace mw::jobs {
namespace {

MachineBenchmarkRequest tiny_benchmark() {
  return {.config = engine::test::tiny_config(),
          .threads = 1,
          .peak_seconds = 0.01,
          .seconds = 0,
          .least_rounds = 2,
          .prefill_tokens = 24,
          .decode_tokens = 3,
          .train_rows = 2,
          .train_len = 16};
}

TEST(MachineBenchmark, MeasuresEveryFigureWithProgress) {
  std::vector<BenchmarkProgress> reports;
  const MachineBenchmark benchmark =
      measure_machine(tiny_benchmark(), [&](const BenchmarkProgress& p) { reports.push_back(p); }, {});
  std::vector<std::string> ids;
  for (const BenchmarkFigure& f : benchmark.figures) {
    ids.push_back(f.id);
    EXPECT_EQ(f.seconds.size(), f.model.empty() ? 2u : 5u) << f.id;
    EXPECT_GT(f.tokens_per_second(), 0) << f.id;
    EXPECT_EQ(f.memory_share.has_value(), f.id.find("lora_step") == std::string::npos) << f.id;
    EXPECT_EQ(f.arithmetic_share.has_value(), benchmark.peak.f32_flops > 0) << f.id;
  }
  const std::vector<std::string> works{"prefill_bf16",   "decode_1_bf16",  "decode_16_bf16", "decode_1_int8",
                                       "decode_16_int8", "lora_step_bf16", "prefill_f32",    "lora_step_f32"};
  ASSERT_EQ(ids.size(), 2 * works.size());
  for (size_t i = 0; i < works.size(); ++i) {
    EXPECT_EQ(ids[i], works[i]);
    EXPECT_EQ(ids[works.size() + i], "small_" + works[i]);
    const BenchmarkFigure& small = benchmark.figures[works.size() + i];
    EXPECT_EQ(small.model, plan::kSmallModel);
    const bool decodes = small.id.find("decode") != std::string::npos;
    EXPECT_EQ(small.kv_seconds > 0, decodes) << small.id;
    EXPECT_LT(small.kv_seconds * 3, small.seconds.back()) << small.id;  // of three tokens
  }
  using engine::ProductKind;
  const ProductKind kinds[] = {ProductKind::bf16, ProductKind::few_bf16, ProductKind::few_bf16, ProductKind::int8,
                               ProductKind::int8, ProductKind::bf16,     ProductKind::f32,      ProductKind::f32};
  for (size_t i = 0; i < works.size(); ++i) {
    const model::WeightType type = kinds[i] == ProductKind::f32    ? model::WeightType::f32
                                   : kinds[i] == ProductKind::int8 ? model::WeightType::int8
                                                                   : model::WeightType::bf16;
    EXPECT_EQ(benchmark.figures[i].kernel, engine::product_instructions(kinds[i], engine::best_arithmetic(type)))
        << benchmark.figures[i].id;
  }
  EXPECT_EQ(benchmark.figures[2].tokens, 48);
  EXPECT_GT(benchmark.peak.dram_bytes, 0);
  ASSERT_EQ(reports.size(), 19u);
  EXPECT_FALSE(reports.front().seconds_left);
  EXPECT_EQ(reports.back().done, reports.back().total);
  const Json json = to_json(benchmark);
  EXPECT_EQ(json["figures"].size(), 16u);
  EXPECT_TRUE(json["figures"][5]["memory_share"].is_null());
  EXPECT_THAT(to_text(benchmark), testing::HasSubstr("LoRA step 2 x 16, bf16"));
}

TEST(MachineBenchmark, LeavesOutWhatDoesNotFit) {
  MachineBenchmarkRequest request = tiny_benchmark();
  request.memory = Bytes(3 * model::TensorInventory(request.config).parameters());
  const MachineBenchmark benchmark = measure_machine(request, {}, {});
  EXPECT_EQ(benchmark.figures.size(), 6u);
  ASSERT_EQ(benchmark.skipped.size(), 7u);  // nothing of the small model fits
  EXPECT_EQ(benchmark.skipped[0].work, "Prefill, f32");
  EXPECT_EQ(to_json(benchmark)["skipped"].size(), 7u);
  EXPECT_THAT(to_text(benchmark), testing::HasSubstr("Not measured: LoRA step, f32: needs"));
  request.memory = Bytes(1000);
  EXPECT_THROW(measure_machine(request, {}, {}), Error);
}

TEST(MachineBenchmark, NamesTheLimitAndTheSpread) {
  BenchmarkFigure figure{.id = "f", .title = "F", .tokens = 10, .seconds = {2, 1, 4}};
  EXPECT_EQ(figure.tokens_per_second(), 5);
  EXPECT_EQ(figure.spread(), 1.5);
  figure.arithmetic_share = 0.3, figure.memory_share = 0.4;
  EXPECT_EQ(figure.limit(), BenchmarkLimit::neither);
  figure.memory_share = 0.8;
  EXPECT_EQ(figure.limit(), BenchmarkLimit::memory);
  figure.arithmetic_share = 0.9;
  EXPECT_EQ(figure.limit(), BenchmarkLimit::arithmetic);
}

TEST(MachineBenchmark, StopsBetweenParts) {
  std::stop_source stop;
  int parts = 0;
  try {
    measure_machine(
        tiny_benchmark(),
        [&](const BenchmarkProgress& p) {
          ++parts;
          if (p.part == "Decode 1 row, bf16") stop.request_stop();
        },
        stop.get_token());
    FAIL() << "not stopped";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::cancelled);
  }
  EXPECT_EQ(parts, 3);
}

TEST(MachineBenchmark, IsSavedWithoutALoraStepThatDidNotFit) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const MachineBenchmarkRequest request = benchmark_request("gemma3-270m", BenchmarkLength::full);
  MachineBenchmark benchmark{.model = "gemma3-270m",
                             .instruction_set = "avx2",
                             .threads = 2,
                             .figures = {{.id = "prefill_bf16", .title = "Prefill", .tokens = 512, .seconds = {1}}},
                             .skipped = {{"LoRA step, bf16", "needs 2 GiB"}}};
  for (const size_t figures : {1, 0}) {
    benchmark.figures.resize(figures);
    const store::RunId run = save_benchmark(store, request, benchmark).run;
    const auto row = store.find(run);
    ASSERT_TRUE(row);
    EXPECT_EQ(row->state, RunState::done);
    EXPECT_EQ(row->steps_done, 0);
    EXPECT_TRUE(store.metric(run, "train/tokens_per_second").empty());
    EXPECT_THROW(audit::measured_run(store, run, plan::PlanContext::load(MW_RESOURCES "/hardware")), Error);
  }
}

TEST(MachineBenchmark, ANoisyOneDoesNotReplaceSteadyRates) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const MachineBenchmarkRequest request = benchmark_request("gemma3-270m", BenchmarkLength::full);
  const auto saved = [&](std::vector<double> seconds, double threads_worth = 2) {
    const MachineBenchmark benchmark{
        .model = "gemma3-270m",
        .instruction_set = "avx2",
        .threads = 2,
        .peak = {.f32_flops = 1e11, .dram_bytes = 1e10, .threads_worth = threads_worth},
        .figures = {
            {.id = "lora_step_bf16", .title = "LoRA", .tokens = 2048, .rows = 4, .len = 512, .seconds = seconds},
            {.id = "small_decode_1_bf16",
             .title = "Small",
             .tokens = 1,
             .len = 1,
             .seconds = {1, 9},
             .model = plan::kSmallModel}}};
    const SavedBenchmark out = save_benchmark(store, request, benchmark, folder.path() / "own");
    EXPECT_EQ(benchmark.is_noisy(), benchmark.spread() > 0.15);
    const plan::MeasuredMachine kept = plan::own_measurements(folder.path() / "own");
    EXPECT_EQ(out.without_rates.empty(), kept.rates.front().source == out.run);
    return std::pair(out.without_rates, kept.rates.front().spread);
  };
  EXPECT_NEAR(saved({4, 4.1, 4.2, 4.1}).second, 0.03, 0.02);
  EXPECT_THAT(saved({6, 9, 6, 9}).first, testing::AllOf(testing::HasSubstr("run-1"), testing::HasSubstr("50 %")));
  EXPECT_THAT(saved({4, 4, 4, 4}, 1).first, testing::HasSubstr("100 %")) << "other programs took a core";
  EXPECT_EQ(saved({8, 8, 8, 8}).first, "") << "steady";
}

TEST(MachineBenchmark, SavedStepsAreRowsOfACalibration) {
  const test::Scratch folder;
  store::Store store(folder.path());
  MachineBenchmarkRequest request = benchmark_request("gemma3-270m", BenchmarkLength::full);
  const MachineBenchmark benchmark{
      .model = "gemma3-270m",
      .instruction_set = "avx2",
      .threads = 2,
      .figures = {{.id = "lora_step_bf16", .title = "LoRA", .tokens = 2048, .seconds = {8, 4, 16}}}};
  const store::RunId run = save_benchmark(store, request, benchmark).run;
  const auto row = store.find(run);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->state, RunState::done);
  EXPECT_EQ(row->tags, "benchmark");
  EXPECT_EQ(row->steps_done, 4);
  EXPECT_EQ(store.metric(run, "train/tokens_per_second"),
            (std::vector<std::pair<long, double>>{{2, 256}, {3, 512}, {4, 128}}));
  const plan::Measurement m = audit::measured_run(store, run, plan::PlanContext::load(MW_RESOURCES "/hardware", {}));
  EXPECT_EQ(m.value, 256);
  EXPECT_EQ(m.request.train.batch, 4);
  EXPECT_EQ(m.request.lengths.max_len, 512);
}

TEST(MachineBenchmark, RefusesWeightsBeyondTheMemory) {
  MachineBenchmarkRequest request = tiny_benchmark();
  request.config.vocab = 2'000'000'000;
  request.config.dim = 20'000;
  try {
    measure_machine(request, {}, {});
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().id, "BENCH-MEMORY");
  }
}

}  // namespace
}  // namespace mw::jobs
