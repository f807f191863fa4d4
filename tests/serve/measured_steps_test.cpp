// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/measured_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/serve/engine_executor.h"
#include "core/serve/engine_layout.h"
#include "core/serve/model_backend.h"
#include "tests/engine/tiny_model.h"

namespace mw::serve {
namespace {

double truth(const StepWork& w) {
  return 2e-4 + 1e-5 * std::min(w.tokens, 16.0) + 4e-6 * std::max(0.0, w.tokens - 16) + 3e-5 * w.sampled +
         2e-9 * w.read + 5e-10 * w.pairs;
}

std::vector<TimedStep> made_up(double noise, int held_up) {
  Rng rng{5};
  std::vector<TimedStep> steps;
  for (int i = 0; i < 600; ++i) {
    StepWork w;
    w.requests = w.sampled = 1 + static_cast<double>(rng.below(16));
    w.tokens = w.requests + (i % 3 == 0 ? static_cast<double>(rng.below(400)) : 0);
    w.read = w.requests * 1000 * static_cast<double>(rng.below(50));
    w.pairs = i % 3 == 0 ? 1e4 * static_cast<double>(rng.below(50)) : 0;
    const double off = 1 + noise * (2 * static_cast<double>(rng.next_uniform()) - 1);
    steps.push_back({w, truth(w) * off * (held_up > 0 && i % held_up == 0 ? 8 : 1)});
  }
  return steps;
}

TEST(MeasuredSteps, FindsTheTermsOfStepsAndIgnoresThoseThatWereHeldUp) {
  const MeasuredStepModel exact(made_up(0, 0));
  EXPECT_LT(exact.median_error(), 1e-3);
  const MeasuredStepModel rough(made_up(0.1, 25));
  EXPECT_NEAR(rough.median_error(), 0.05, 0.03);
  for (const TimedStep& s : made_up(0, 0)) {
    EXPECT_NEAR(exact.seconds(s.work) / s.seconds, 1, 0.01);
    EXPECT_NEAR(rough.seconds(s.work) / s.seconds, 1, 0.08);
  }
  const std::vector<TimedStep> few(7, TimedStep{{}, 1});
  EXPECT_THROW(MeasuredStepModel{few}, Error);
}

TEST(MeasuredSteps, CountWhatEachTokenSees) {
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

TEST(MeasuredSteps, AServerIsTimedFittedAndSimulated) {
  engine::Device device(Bytes(0), 2);
  engine::Network network(engine::test::tiny_config(), device, engine::WeightType::f32);
  engine::test::fill(network, 8, 0.25f);
  SchedulerSettings s{.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 120, .kv = {}};
  s = with_engine_kv(network, s, Bytes(0));
  std::vector<TimedStep> steps;
  {
    EngineExecutor executor(network, s);
    steps = time_steps(executor, s, network.config(), 0.2);
  }
  ASSERT_GT(steps.size(), 100u);
  for (const TimedStep& step : steps) ASSERT_GT(step.seconds, 0);
  const MeasuredStepModel model(steps);
  EXPECT_FALSE(model.text().empty());
  LoadSettings load;
  load.arrival = Arrival::closed, load.concurrency = 1;
  load.input_len = 20, load.output_len = 10, load.num_prompts = 5;
  const auto simulated = virtual_backend(measured_executor(model, network.config()), s);
  const Played played = simulated->play(make_load(load), {}, {});
  ASSERT_EQ(played.requests.size(), 5u);
  double expected = 0;  // of one request alone: its prompt, then token by token
  for (int t = 0; t < 10; ++t) {
    Step step;
    step.items.push_back({.id = RequestId{1}, .first = t == 0 ? 0 : 19 + t, .count = t == 0 ? 20 : 1, .samples = true});
    expected += model.seconds(step_work(step, network.config()));
  }
  EXPECT_NEAR(played.duration_s, 5 * expected, 1e-6 * expected);
}

}  // namespace
}  // namespace mw::serve
