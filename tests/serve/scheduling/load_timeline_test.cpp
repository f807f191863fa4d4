// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/load_timeline.h"

#include <gtest/gtest.h>

namespace mw::serve {
namespace {

TEST(LoadTimeline, StaysBoundedWithEvenSamplesAndCountsEveryToken) {
  LoadTimeline timeline;
  std::int64_t tokens = 0;
  constexpr int kSteps = 200'000;
  for (int i = 1; i <= kSteps; ++i) {
    tokens += i % 7;
    timeline.add(1e-3 * i, {.running = i % 5, .waiting = 0, .kv_used = 0}, tokens);
  }
  const auto samples = timeline.take();
  ASSERT_LE(samples.size(), LoadTimeline::kMaxSamples);
  ASSERT_GE(samples.size(), LoadTimeline::kMaxSamples / 4);
  double counted = samples[0].output_tokens_s * samples[0].time_s;
  const double interval = samples[1].time_s - samples[0].time_s;
  for (size_t i = 1; i < samples.size(); ++i) {
    EXPECT_NEAR(samples[i].time_s - samples[i - 1].time_s, interval, 0.1 * interval);
    counted += samples[i].output_tokens_s * (samples[i].time_s - samples[i - 1].time_s);
  }
  EXPECT_NEAR(counted, samples.back().time_s * 1e3 * 3, 20);
  timeline.add(1e-3 * kSteps + 0.5, {}, tokens);
  timeline.add(1e-3 * kSteps + 0.53, {}, tokens);
  EXPECT_EQ(timeline.take().size(), 2u) << "take() restores the shortest interval";
}

}  // namespace
}  // namespace mw::serve
