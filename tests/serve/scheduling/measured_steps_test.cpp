// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/measured_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "tests/engine/tiny_model.h"

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

TEST(MeasuredSteps, ScalingKeepsTheTimeOfDelayedSteps) {
  const std::vector<formats::TimedStep> steps = synthetic_steps(0, 25);
  const MeasuredStepModel model(steps), scaled = model.scaled_to(steps);
  double measured = 0, modelled = 0;
  for (const formats::TimedStep& s : steps) measured += s.seconds, modelled += scaled.seconds(s.work);
  EXPECT_NEAR(modelled / measured, 1, 1e-9);
  EXPECT_GT(scaled.seconds(steps[1].work), 1.1 * model.seconds(steps[1].work)) << "the fit ignores delayed steps";
  EXPECT_FALSE(model.describe().empty());
}

}  // namespace
}  // namespace mw::serve
