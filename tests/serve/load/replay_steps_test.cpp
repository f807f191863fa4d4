// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/replay_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/serve/scheduling/measured_steps.h"
#include "tests/serve/load/linear_cost_backend.h"

namespace mw::serve {
namespace {

double modelled(const formats::ServingStepWork& w) {
  return 2e-4 + 2e-5 * w.tokens + 1e-5 * w.requests;
}

formats::ServingStepWork decode(double requests) {
  return {.tokens = requests, .requests = requests, .sampled = requests};
}

// Fitted to decode steps of a known model.
MeasuredStepModel fitted_model() {
  std::vector<formats::TimedStep> steps;
  for (int i = 0; i < 200; ++i) steps.push_back({decode(1 + i % 16), modelled(decode(1 + i % 16))});
  return MeasuredStepModel(steps);
}

// A load whose steps differ from the model by a factor of work and progress.
template <class F>
ReplayStepModel replay_model(F factor) {
  std::vector<formats::TimedStep> own;
  for (int i = 0; i < 200; ++i) {
    const formats::ServingStepWork w = decode(1 + i % 16);
    const double progress = (i + 0.5) / 200;
    own.push_back({w, modelled(w) * factor(w, progress), 1, progress});
  }
  return {fitted_model(), own};
}

TEST(ReplayStepModel, FollowsDriftThroughTheLoad) {
  const ReplayStepModel steps =
      replay_model([](const formats::ServingStepWork&, double progress) { return progress < 0.5 ? 1.0 : 1.5; });
  for (const double n : {1.0, 7.0, 16.0}) {
    EXPECT_NEAR(steps.seconds(decode(n), 0.2) / modelled(decode(n)), 1.0, 0.02) << n;
    EXPECT_NEAR(steps.seconds(decode(n), 0.8) / modelled(decode(n)), 1.5, 0.02) << n;
  }
  EXPECT_EQ(steps.output_tokens(), 12 * (16 * 17 / 2) + 8 * 9 / 2);
}

TEST(ReplayStepModel, CorrectsOnlySimilarWork) {
  const ReplayStepModel steps =
      replay_model([](const formats::ServingStepWork& w, double) { return w.requests == 3 ? 2.0 : 1.0; });
  EXPECT_NEAR(steps.seconds(decode(3), 0.5) / modelled(decode(3)), 2.0, 0.1);
  EXPECT_NEAR(steps.seconds(decode(12), 0.5) / modelled(decode(12)), 1.0, 0.02);
  const formats::ServingStepWork prefill{
      .tokens = 200, .requests = 1, .sampled = 1};  // unlike all steps: not corrected
  EXPECT_EQ(steps.seconds(prefill, 0.5), fitted_model().seconds(prefill));
}

TEST(ReplayStepModel, StepsOfUnknownProgressCountEverywhere) {
  std::vector<formats::TimedStep> model_steps, own;
  for (int i = 0; i < 64; ++i) {
    const formats::ServingStepWork w = decode(1 + i % 16);
    model_steps.push_back({w, modelled(w)});
    own.push_back({w, modelled(w) * 3});
  }
  const ReplayStepModel steps(MeasuredStepModel(model_steps), own), none(MeasuredStepModel(model_steps), {});
  for (const double progress : {0.0, 0.6, 1.0}) {
    EXPECT_NEAR(steps.seconds(decode(5), progress) / modelled(decode(5)), 3.0, 0.1) << progress;
    EXPECT_NEAR(none.seconds(decode(5), progress) / modelled(decode(5)), 1.0, 0.02) << progress;
  }
}

TEST(ReplayStepModel, WarmUpsDoNotAdvanceTheProgress) {
  const ReplayStepModel steps =
      replay_model([](const formats::ServingStepWork&, double progress) { return progress < 0.5 ? 1.0 : 1.5; });
  ReplayExecutor executor(steps, {});
  Load load;
  load.warmups = {{.prompt_len = 1, .output_len = 900}};
  executor.use(steps, load);
  const Scheduler scheduler(roomy(1, 16));
  Step step;
  step.items.push_back({.id = RequestId{1}, .first = 4, .count = 1, .samples = true});
  const auto next = [&] { return executor.run(step, scheduler).seconds / modelled(decode(1)); };
  for (int i = 0; i < 900; ++i) ASSERT_NEAR(next(), 1.0, 0.02) << "warm-up " << i;
  const int tokens = static_cast<int>(steps.output_tokens());
  for (int i = 0; i < tokens; ++i) {
    const double off = next();
    if (i < tokens * 2 / 5) {
      ASSERT_NEAR(off, 1.0, 0.02) << i;
    } else if (i > tokens * 3 / 5) {
      ASSERT_NEAR(off, 1.5, 0.02) << i;
    }
  }
}

TEST(ReplayStepModel, LoggedStepsHaveTheirProgress) {
  std::vector<LoggingExecutor::Entry> log;
  log.push_back({{.tokens = 100, .requests = 1, .sampled = 0}, 0, 1});
  log.push_back({{.tokens = 50, .requests = 1, .sampled = 1}, 1, 2});
  log.push_back({decode(3), 2, 3});
  const std::vector<formats::TimedStep> steps = time_logged_steps(log);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].progress, 0);
  EXPECT_EQ(steps[1].progress, 0.125);
  EXPECT_EQ(steps[2].progress, 0.625);
  // Similar steps are merged only if their progress is similar too.
  std::vector<formats::TimedStep> four{
      {decode(1), 1, 1, 0.1}, {decode(1), 3, 1, 0.101}, {decode(1), 5, 1, 0.9}, {decode(1), 7}};
  const auto kept = merge_similar_steps(four);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_TRUE(std::isnan(kept[0].progress));
  EXPECT_EQ(kept[0].seconds, 7);
  EXPECT_NEAR(kept[1].progress, 0.1005, 1e-9);
  EXPECT_EQ(kept[1].seconds, 2);
  EXPECT_EQ(kept[2].seconds, 5);
}

}  // namespace
}  // namespace mw::serve
