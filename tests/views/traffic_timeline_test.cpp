// SPDX-License-Identifier: Apache-2.0
#include "core/views/traffic_timeline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/mesh/collectives/collectives.h"

namespace mw::views {
namespace {

// Two layers gather over fsdp, one sums over tp; two devices.
event::StepTraffic step(long number, std::int64_t bytes) {
  return {number,
          {{"all-gather", "fsdp", "forward", "FSDP gather", 0, 2, Bytes(bytes), 0.5, 0.25},
           {"all-gather", "fsdp", "forward", "FSDP gather", 1, 2, Bytes(bytes), 0.5, 0.125},
           {"all-reduce", "tp", "forward", "partial sums", 0, 3, Bytes(10), 0.25, 0}},
          {{Bytes(bytes), 1, 0.25}, {Bytes(bytes + 10), 1.5, 0.5}}};
}

TEST(TrafficTimeline, SumsTrafficOverLayers) {
  TrafficTimeline t;
  t.append(1, step(1, 100));
  ASSERT_EQ(t.points.size(), 1u);
  ASSERT_EQ(t.points[0].flows.size(), 2u);
  EXPECT_EQ(t.points[0].flows[0].calls, 4);
  EXPECT_EQ(t.points[0].flows[0].bytes, 200);
  EXPECT_EQ(t.points[0].flows[0].waited, 0.375);
  EXPECT_EQ(t.points[0].devices[1].bytes, 110);
}

TEST(TrafficTimeline, ReportsPlannedAndMeasuredBytes) {
  event::StepTraffic right = step(1, 100), wrong = step(2, 100), silent = step(3, 100);
  for (event::StepTraffic* t : {&right, &wrong})
    for (event::StepTraffic::Entry& e : t->entries) e.planned = e.bytes;
  wrong.entries[1].planned = Bytes(96);  // of two layers' gathers over fsdp
  silent.entries[0].planned = Bytes(100);
  TrafficTimeline t;
  for (const event::StepTraffic* e : {&right, &wrong, &silent}) t.append(1, *e);
  const auto planned = [&](size_t point) { return by_axis(t, t.points[point]).at(0).sum; };
  EXPECT_EQ(planned(0).planned, 200);
  EXPECT_TRUE(planned(0).as_planned());
  EXPECT_EQ(sum(t.points[0]).planned, 210);
  EXPECT_EQ(planned(1).planned, 196);
  EXPECT_FALSE(planned(1).as_planned());
  EXPECT_TRUE(by_axis(t, t.points[1]).at(1).sum.as_planned()) << "tp is as planned";
  EXPECT_FALSE(sum(t.points[1]).as_planned());
  EXPECT_FALSE(planned(2).planned) << "half of a plan is none";
  EXPECT_TRUE(planned(2).as_planned());
}

TEST(TrafficTimeline, SecondsSeparateWaiting) {
  TrafficTimeline t;
  t.append(1, step(1, 100));
  EXPECT_EQ(t.layers(TrafficBy::cause, TrafficAmount::seconds),
            (std::vector<std::string>{"FSDP gather", "partial sums", "waiting"}));
  EXPECT_EQ(t.split(0, TrafficBy::cause, TrafficAmount::seconds), (std::vector<double>{0.625, 0.25, 0.375}));
  double sum = 0;
  for (const double s : t.split(0, TrafficBy::kind, TrafficAmount::seconds)) sum += s;
  EXPECT_EQ(sum, t.seconds_by_step[0].y);
}

TEST(TrafficTimeline, EverySplitOfBytesSumsToTheTotal) {
  TrafficTimeline t;
  for (long s = 1; s <= 5; ++s) t.append(1, step(s, 100 * s));
  for (const TrafficBy by : {TrafficBy::kind, TrafficBy::cause, TrafficBy::axis})
    for (size_t i = 0; i < t.points.size(); ++i) {
      double sum = 0;
      for (const double b : t.split(i, by, TrafficAmount::bytes)) sum += b;
      EXPECT_EQ(sum, t.bytes_by_step[i].y);
    }
}

TEST(TrafficTimeline, AStepWithoutTrafficHasAZeroInItsLayer) {
  TrafficTimeline t;
  t.append(1, step(1, 100));
  t.append(2, {2, {{"all-reduce", "tp", "forward", "partial sums", 0, 1, Bytes(7), 0.25, 0}}, {}});
  EXPECT_EQ(t.split(1, TrafficBy::axis, TrafficAmount::bytes), (std::vector<double>{0, 7}));
  const auto axes = by_axis(t, t.points[1]);
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].axis, "fsdp");
  EXPECT_EQ(axes[0].sum.bytes, 0);
  EXPECT_EQ(axes[1].sum.calls, 1);
}

TEST(TrafficTimeline, ARepeatedStepReplacesLaterSteps) {
  TrafficTimeline t, straight;
  for (long s = 1; s <= 6; ++s) t.append(1, step(s, 100));
  t.append(1, step(3, 50));
  for (long s = 1; s <= 3; ++s) straight.append(1, step(s, s == 3 ? 50 : 100));
  EXPECT_EQ(t, straight);
}

TEST(TrafficTimeline, CausesHaveShortNames) {
  for (const auto cause : {mesh::Cause::gather_shards, mesh::Cause::inefficient_spec, mesh::Cause::partial_sums,
                           mesh::Cause::embedding_rows, mesh::Cause::softmax, mesh::Cause::logits}) {
    TrafficTimeline t;
    t.append(1, {1, {{"all-gather", "tp", "forward", mesh::to_string(cause), 0, 1, Bytes(1), 0, 0}}, {}});
    EXPECT_LT(t.layers(TrafficBy::cause, TrafficAmount::bytes).at(0).size(), 17u);
    EXPECT_NE(t.kinds[0].cause, mesh::to_string(cause));
  }
}

TEST(TrafficTimeline, ToleratesInvalidNumbers) {
  TrafficTimeline t;
  t.append(
      1,
      {1, {{"all-gather", "fsdp", "forward", "x", 0, -5, Bytes(-9), std::nan(""), INFINITY}}, {{Bytes(1), NAN, -1}}});
  EXPECT_EQ(sum(t.points[0]), (TrafficTotals{0, 0, 0, 0, 0}));
  EXPECT_EQ(t.points[0].devices[0], (DeviceTraffic{1, 0, 0}));
}

}  // namespace
}  // namespace mw::views
