// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/replay_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/serve/scheduling/step_timing.h"
#include "tests/serve/scheduling/virtual_time.h"

namespace mw::serve {
namespace {

double law_of(const StepWork& w) {
  return 2e-4 + 2e-5 * w.tokens + 1e-5 * w.requests;
}

StepWork decode(double requests) {
  return {.tokens = requests, .requests = requests, .sampled = requests};
}

// A law that every step keeps, and a load's steps that are off it by a factor of moment and work.
template <class F>
ReplayStepModel paced(F off) {
  std::vector<TimedStep> lawful, own;
  for (int i = 0; i < 200; ++i) {
    const StepWork w = decode(1 + i % 16);
    lawful.push_back({w, law_of(w)});
    const double moment = (i + 0.5) / 200;
    own.push_back({w, law_of(w) * off(w, moment), 1, moment});
  }
  return {MeasuredStepModel(lawful), own};
}

TEST(ReplayStepModel, FollowTheMachineThroughTheLoad) {
  const ReplayStepModel steps = paced([](const StepWork&, double moment) { return moment < 0.5 ? 1.0 : 1.5; });
  for (const double n : {1.0, 7.0, 16.0}) {
    EXPECT_NEAR(steps.seconds(decode(n), 0.2) / law_of(decode(n)), 1.0, 0.02) << n;
    EXPECT_NEAR(steps.seconds(decode(n), 0.8) / law_of(decode(n)), 1.5, 0.02) << n;
  }
  EXPECT_EQ(steps.output_tokens(), 12 * (16 * 17 / 2) + 8 * 9 / 2);
}

TEST(ReplayStepModel, WhatTheLawGetsWrongOfSomeWorkIsCorrectedThereOnly) {
  const ReplayStepModel steps = paced([](const StepWork& w, double) { return w.requests == 3 ? 2.0 : 1.0; });
  EXPECT_NEAR(steps.seconds(decode(3), 0.5) / law_of(decode(3)), 2.0, 0.1);
  EXPECT_NEAR(steps.seconds(decode(12), 0.5) / law_of(decode(12)), 1.0, 0.02);
  const StepWork prefill{.tokens = 200, .requests = 1, .sampled = 1};  // like none of them: the law's
  EXPECT_EQ(steps.seconds(prefill, 0.5), steps.law().seconds(prefill));
}

TEST(ReplayStepModel, WithoutTheirMomentsStepsCountAtEach) {
  std::vector<TimedStep> lawful, own;
  for (int i = 0; i < 64; ++i) {
    const StepWork w = decode(1 + i % 16);
    lawful.push_back({w, law_of(w)});
    own.push_back({w, law_of(w) * 3});
  }
  const ReplayStepModel steps(MeasuredStepModel(lawful), own), none(MeasuredStepModel(lawful), {});
  for (const double moment : {0.0, 0.6, 1.0}) {
    EXPECT_NEAR(steps.seconds(decode(5), moment) / law_of(decode(5)), 3.0, 0.1) << moment;
    EXPECT_NEAR(none.seconds(decode(5), moment) / law_of(decode(5)), 1.0, 0.02) << moment;
  }
}

// The first answered token of the load is its first moment, whatever came before.
TEST(ReplayStepModel, WarmUpsAreNotMomentsOfTheLoad) {
  const ReplayStepModel steps = paced([](const StepWork&, double moment) { return moment < 0.5 ? 1.0 : 1.5; });
  ReplayExecutor executor(steps, {});
  Load load;
  load.warmups = {{.prompt_len = 1, .output_len = 900}};
  executor.use(steps, load);
  const Scheduler scheduler(roomy(1, 16));
  Step step;
  step.items.push_back({.id = RequestId{1}, .first = 4, .count = 1, .samples = true});
  const auto next = [&] { return executor.run(step, scheduler).seconds / law_of(decode(1)); };
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

TEST(ReplayStepModel, ALogTellsTheMomentsOfItsSteps) {
  std::vector<LoggingExecutor::Entry> log;
  log.push_back({{.tokens = 100, .requests = 1, .sampled = 0}, 0, 1});
  log.push_back({{.tokens = 50, .requests = 1, .sampled = 1}, 1, 2});
  log.push_back({decode(3), 2, 3});
  const std::vector<TimedStep> steps = time_logged_steps(log);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].moment, 0);
  EXPECT_EQ(steps[1].moment, 0.125);
  EXPECT_EQ(steps[2].moment, 0.625);
  // Alike but of another moment, they are kept apart; of the same, together.
  std::vector<TimedStep> four{{decode(1), 1, 1, 0.1}, {decode(1), 3, 1, 0.101}, {decode(1), 5, 1, 0.9}, {decode(1), 7}};
  const auto kept = timed_steps(merge_similar_steps(four));
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_TRUE(std::isnan(kept[0].moment));
  EXPECT_EQ(kept[0].seconds, 7);
  EXPECT_NEAR(kept[1].moment, 0.1005, 1e-9);
  EXPECT_EQ(kept[1].seconds, 2);
  EXPECT_EQ(kept[2].seconds, 5);
}

}  // namespace
}  // namespace mw::serve
