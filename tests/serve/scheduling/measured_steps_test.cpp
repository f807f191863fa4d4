// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/measured_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/serve/scheduling/step_timing.h"
#include "tests/engine/tiny_model.h"
#include "tests/serve/load/linear_cost_backend.h"

namespace mw::serve {
namespace {

double truth(const formats::ServingStepWork& w) {
  return 2e-4 + 1e-5 * std::min(w.tokens, 16.0) + 4e-6 * std::max(0.0, w.tokens - 16) + 3e-5 * w.sampled +
         2e-9 * w.read + 5e-10 * w.pairs;
}

std::vector<formats::TimedStep> synthetic_steps(double noise, int delayed) {
  Rng rng{5};
  std::vector<formats::TimedStep> steps;
  for (int i = 0; i < 600; ++i) {
    formats::ServingStepWork w;
    w.requests = w.sampled = 1 + static_cast<double>(rng.below(16));
    w.tokens = w.requests + (i % 3 == 0 ? static_cast<double>(rng.below(400)) : 0);
    w.read = w.requests * 1000 * static_cast<double>(rng.below(50));
    w.pairs = i % 3 == 0 ? 1e4 * static_cast<double>(rng.below(50)) : 0;
    const double off = 1 + noise * (2 * static_cast<double>(rng.next_uniform()) - 1);
    steps.push_back({w, truth(w) * off * (delayed > 0 && i % delayed == 0 ? 8 : 1)});
  }
  return steps;
}

TEST(MeasuredSteps, FitsTheTermsAndIgnoresDelayedSteps) {
  const MeasuredStepModel exact(synthetic_steps(0, 0));
  EXPECT_LT(exact.median_error(), 1e-3);
  const MeasuredStepModel rough(synthetic_steps(0.1, 25));
  EXPECT_NEAR(rough.median_error(), 0.05, 0.03);
  for (const formats::TimedStep& s : synthetic_steps(0, 0)) {
    EXPECT_NEAR(exact.seconds(s.work) / s.seconds, 1, 0.01);
    EXPECT_NEAR(rough.seconds(s.work) / s.seconds, 1, 0.08);
  }
  const std::vector<formats::TimedStep> few(7, formats::TimedStep{{}, 1});
  EXPECT_THROW(MeasuredStepModel{few}, Error);
}

TEST(MeasuredSteps, MergedStepsGiveTheSameModel) {
  const std::vector<formats::TimedStep> all = synthetic_steps(0.1, 0);
  const std::vector<formats::TimedStep> kept = merge_similar_steps(all);
  EXPECT_LT(kept.size(), all.size() * 2 / 3);
  const auto sums = [](const std::vector<formats::TimedStep>& steps) {
    std::array<double, 5> s{};
    for (const formats::TimedStep& t : steps) {
      s[0] += t.count, s[1] += t.count * t.seconds, s[2] += t.count * t.work.tokens;
      s[3] += t.count * t.work.read, s[4] += t.count * t.work.pairs;
    }
    return s;
  };
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(sums(kept)[i] / sums(all)[i], 1, 1e-9) << i;
  const MeasuredStepModel whole(all), merged(kept);
  for (const formats::TimedStep& s : synthetic_steps(0, 0))
    EXPECT_NEAR(merged.seconds(s.work) / whole.seconds(s.work), 1, 0.05) << s.work.tokens;
  EXPECT_NEAR(merged.scaled_to(all).seconds(all[0].work) / whole.scaled_to(kept).seconds(all[0].work), 1, 0.05);
}

TEST(MeasuredSteps, CountsAttendedKeysPerLayer) {
  model::Config config = engine::test::tiny_config();  // three sliding layers of window 5 and a full one
  const auto work = [&](int first, int count) {
    Step step;
    step.items.push_back({.id = RequestId{1}, .first = first, .count = count, .samples = true});
    return step_work(step, config);
  };
  EXPECT_EQ(work(9, 1).read, (10 + 3 * 5) * 2 * 2 * 8);
  EXPECT_EQ(work(9, 1).pairs, 0);
  EXPECT_EQ(work(0, 7).pairs, (28 + 3 * (1 + 2 + 3 + 4 + 5 + 5 + 5)) * 4 * 8);
  EXPECT_EQ(work(3, 4).pairs, ((4 + 5 + 6 + 7) + 3 * (4 + 5 + 5 + 5)) * 4 * 8);
  EXPECT_EQ(work(0, 7).tokens, 7);
  EXPECT_EQ(work(0, 7).read, 0);
}

// Steps take a known time on a virtual clock; kept are delayed.
class SyntheticExecutor : public Executor {
 public:
  explicit SyntheticExecutor(model::Config config, int delayed = 0) : config_(std::move(config)), delayed_(delayed) {}
  StepResult run(const Step& step, const Scheduler&) override {
    const bool delayed = delayed_ > 0 && ++steps_ % delayed_ < 2;  // pairs of steps
    const double seconds = truth(step_work(step, config_)) * (delayed ? 4 : 1);
    now_ = now_ + seconds;
    return {seconds, zero_tokens(step)};
  }
  StepClock clock() const {
    return [this] { return now_.load(); };
  }

 private:
  model::Config config_;
  int delayed_, steps_ = 0;
  std::atomic<double> now_{0};
};

// Times, fits and simulates a machine whose step times are known.
TEST(MeasuredSteps, SimulatedSweepMatchesTheTimedMachine) {
  model::Config config = engine::test::tiny_config();
  config.sliding_window = 64;
  const SchedulerSettings s = roomy(16, 256);
  SchedulerSettings short_ones = s;
  short_ones.max_model_len = 600;
  SyntheticExecutor machine(config);
  double shown = 0;
  TimingSettings timing{.budget_s = 1.5, .clock = machine.clock()};
  timing.progress = [&](double share) {
    EXPECT_GE(share, shown);
    shown = share;
  };
  const double before = machine.clock()();
  const std::vector<formats::TimedStep> steps = time_steps(machine, short_ones, config, timing);
  EXPECT_LT(machine.clock()() - before, 1.7) << "the budget and at most one more step";
  EXPECT_GT(shown, 0.9);
  const MeasuredStepModel model(steps);
  EXPECT_LT(model.median_error(), 0.01);
  const auto simulated = make_simulated_backend(std::make_unique<MeasuredExecutor>(model, config), s);
  const auto measured = make_simulated_backend(std::make_unique<SyntheticExecutor>(config), s);
  for (const int len : {40, 500})  // prompts in one step and in chunks
    for (const double rate : {20.0, 120.0, 4000.0}) {
      const options::LoadSettings load{.request_rate = rate, .input_len = len, .output_len = 32, .num_prompts = 150};
      const formats::BenchPoint a = run_load(*measured, load), b = run_load(*simulated, load);
      EXPECT_EQ(a.verdict, b.verdict) << len << " at " << rate;
      EXPECT_NEAR(b.output_throughput / a.output_throughput, 1, 0.02) << len << " at " << rate;
      EXPECT_NEAR(b.tpot.median / a.tpot.median, 1, 0.03) << len << " at " << rate;
      EXPECT_NEAR(b.ttft.median / a.ttft.median, 1, 0.05) << len << " at " << rate;
    }
}

TEST(MeasuredSteps, ScalingAccountsForDelayedSteps) {
  const model::Config config = engine::test::tiny_config();
  SchedulerSettings s = roomy(16, 256);
  s.max_model_len = 600;
  SyntheticExecutor machine(config, 50);
  const std::vector<formats::TimedStep> steps =
      time_steps(machine, s, config, {.budget_s = 4, .clock = machine.clock()});
  const MeasuredStepModel model = MeasuredStepModel(steps).scaled_to(steps);
  EXPECT_LT(model.median_error(), 0.01) << "delayed steps do not affect the fit";
  const auto simulated = make_simulated_backend(std::make_unique<MeasuredExecutor>(model, config), s);
  const auto measured = make_simulated_backend(std::make_unique<SyntheticExecutor>(config, 50), s);
  for (const double rate : {20.0, 4000.0}) {
    const options::LoadSettings load{.request_rate = rate, .input_len = 40, .output_len = 32, .num_prompts = 300};
    const formats::BenchPoint a = run_load(*measured, load), b = run_load(*simulated, load);
    EXPECT_NEAR(b.output_throughput / a.output_throughput, 1, 0.03) << rate;
    EXPECT_NEAR(b.tpot.median / a.tpot.median, 1, 0.1) << rate;
  }
}

TEST(MeasuredSteps, FailedStepEndsTheCalibration) {
  class Broken : public Executor {
    StepResult run(const Step&, const Scheduler&) override { throw std::runtime_error("no more"); }
  } broken;
  EXPECT_THROW(time_steps(broken, roomy(4, 64), engine::test::tiny_config()), Error);
}

TEST(MeasuredSteps, TimesFitsAndSimulatesTheEngine) {
  engine::Device device(Bytes(0), 2);
  engine::Network network(engine::test::tiny_config(), device, model::WeightType::f32);
  engine::test::fill(network, 8, 0.25f);
  SchedulerSettings s{.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 120, .kv = {}};
  s = lay_out_engine_kv(network.config(), s, Bytes(0));
  std::vector<formats::TimedStep> steps;
  {
    EngineExecutor executor(network, s);
    steps = time_steps(executor, s, network.config(), {.budget_s = 0.2, .first_id = 3});
  }
  ASSERT_GE(steps.size(), 2 * MeasuredStepModel::kTerms);
  for (const formats::TimedStep& step : steps) ASSERT_GT(step.seconds, 0);
  const MeasuredStepModel model(steps);
  EXPECT_FALSE(model.describe().empty());
  options::LoadSettings load;
  load.arrival = options::Arrival::closed, load.concurrency = 1;
  load.input_len = 20, load.output_len = 10, load.num_prompts = 5;
  const auto simulated = make_simulated_backend(std::make_unique<MeasuredExecutor>(model, network.config()), s);
  const LoadResult result = simulated->run(make_load(load), {}, {});
  ASSERT_EQ(result.requests.size(), 5u);
  double expected = 0;  // requests run one after another: prefill, then single tokens
  for (int i = 0; i < 50; ++i) {
    const int t = i % 10;
    Step step;
    step.items.push_back({.id = RequestId{1}, .first = t == 0 ? 0 : 19 + t, .count = t == 0 ? 20 : 1, .samples = true});
    expected += model.seconds(step_work(step, network.config()));
  }
  EXPECT_NEAR(result.duration_s, expected, 1e-6 * expected);
}

}  // namespace
}  // namespace mw::serve
