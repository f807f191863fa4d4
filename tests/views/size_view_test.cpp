// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/size_view.h"

#include <gtest/gtest.h>

namespace mw::views {
namespace {

using options::Workload;

serve::MeasuredSize measured(Workload workload, int batch) {
  serve::MeasuredSize p;
  p.workload = workload, p.batch = batch, p.capacity = Bytes(10000);
  p.predicted[MemoryCategory::weights] = Bytes(500);
  p.predicted[MemoryCategory::logits] = Bytes(100 * batch);
  p.measured = serve::MeasuredSize::Measured{.seconds = 0.25 * batch,
                                             .prefill_seconds = workload == Workload::rollout ? 0.125 : 0,
                                             .step_seconds = workload == Workload::rollout ? 0.0625 : 0,
                                             .tokens = 64 * batch,
                                             .repeats = 3,
                                             .memory = p.predicted};
  return p;
}

serve::MeasuredSize refused(Workload workload, int batch) {
  serve::MeasuredSize p = measured(workload, batch);
  p.measured.reset();
  p.predicted[MemoryCategory::logits] = Bytes(100 * batch);
  p.largest_batch = 95;
  return p;
}

RunView run_of(const std::vector<Json>& points) {
  RunView view;
  view.feed({0, event::Started{Json{{"kind", "size"},
                                    {"steps", 6},
                                    {"workloads", {"rollout", "forward"}},
                                    {"batches", {1, 4, 128}},
                                    {"capacity_bytes", 10000}}}});
  long step = 0;
  for (const Json& p : points) view.feed({1.0 + static_cast<double>(step), event::ResultPoint{++step, "size", p}});
  return view;
}

TEST(SizeView, PointsRoundTripThroughJson) {
  for (const auto& p :
       {measured(Workload::rollout, 4), measured(Workload::chunked_forward, 1), refused(Workload::forward, 128)}) {
    const serve::MeasuredSize back = size_point(to_json(p));
    EXPECT_EQ(to_json(back), to_json(p));
    EXPECT_EQ(back.fits(), p.fits());
    EXPECT_EQ(back.measured.has_value(), p.measured.has_value());
    if (p.measured) {
      EXPECT_EQ(back.measured->seconds, p.measured->seconds);
      EXPECT_EQ(back.measured->step_seconds, p.measured->step_seconds);
      EXPECT_EQ(back.measured->memory, p.measured->memory);
    }
  }
}

serve::MeasuredSize predicted(Workload workload, int batch, bool adapters) {
  serve::MeasuredSize p = measured(workload, batch);
  p.measured.reset();
  p.adapters = adapters;
  p.predicted_time = serve::MeasuredSize::PredictedTime{.seconds = 0.5 * batch,
                                                        .low = 0.4 * batch,
                                                        .high = 0.75 * batch,
                                                        .origin = plan::Origin::transferred,
                                                        .tokens = 32 * batch};
  return p;
}

TEST(SizeView, HasLinesWithAndWithoutAdaptersOfAPrediction) {
  RunView run;
  run.feed({0, event::Started{Json{{"kind", "size"},
                                   {"source", "predicted"},
                                   {"device", {{"id", "v5e-1"}}},
                                   {"workloads", {"rollout"}},
                                   {"batches", {1, 4}},
                                   {"capacity_bytes", 10000}}}});
  long step = 0;
  for (const bool adapters : {false, true})
    for (const int batch : {1, 4}) {
      const serve::MeasuredSize p = predicted(Workload::rollout, batch, adapters);
      const serve::MeasuredSize back = size_point(to_json(p));
      EXPECT_EQ(to_json(back), to_json(p));
      EXPECT_EQ(back.predicted_time->high, 0.75 * batch);
      EXPECT_EQ(back.predicted_time->origin, plan::Origin::transferred);
      run.feed({1.0, event::ResultPoint{++step, "size", to_json(p)}});
    }
  const SizeView view = size_view(run);
  EXPECT_TRUE(view.is_predicted && view.has_both());
  EXPECT_EQ(view.target, "v5e-1");
  ASSERT_EQ(view.lines.size(), 2u);
  EXPECT_EQ(view.find(Workload::rollout, true)->points.size(), 2u);
  EXPECT_EQ(view.find(Workload::forward, true), nullptr);
  EXPECT_EQ(view.highest.value, 900);
  EXPECT_FALSE(size_view(run_of({to_json(measured(Workload::rollout, 4))})).is_predicted);
}

TEST(SizeView, HasItsAxesBeforeTheFirstPoint) {
  const SizeView view = size_view(run_of({}));
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.batches, (std::vector<int>{1, 4, 128}));
  ASSERT_EQ(view.lines.size(), 2u);
  EXPECT_EQ(view.lines[1].workload, Workload::forward);
  EXPECT_EQ(view.capacity->value, 10000);
}

TEST(SizeView, SortsPointsAndFindsTheLargest) {
  const SizeView view =
      size_view(run_of({to_json(measured(Workload::rollout, 4)), to_json(measured(Workload::rollout, 1)),
                        to_json(refused(Workload::forward, 128)), to_json(measured(Workload::forward, 1))}));
  EXPECT_FALSE(view.empty());
  ASSERT_EQ(view.lines[0].points.size(), 2u);
  EXPECT_EQ(view.lines[0].points[0].batch, 1);
  EXPECT_EQ(view.lines[1].points[1].batch, 128);
  EXPECT_FALSE(view.lines[1].points[1].fits());
  EXPECT_EQ(view.lines[1].points[1].largest_batch, 95);
  EXPECT_EQ(view.highest.value, 900);
  EXPECT_EQ(view.largest_refused.value, 13300);
  EXPECT_EQ(view.category_most[MemoryCategory::logits].value, 12800);
}

TEST(SizeView, IgnoresInvalidPoints) {
  const Json good = to_json(measured(Workload::forward, 4));
  std::vector<Json> bad;
  const auto spoil = [&](const char* pointer, const Json& value) {
    bad.push_back(good);
    bad.back()[Json::json_pointer(pointer)] = value;
  };
  spoil("/mode", "training");
  spoil("/batch", 0);
  spoil("/batch", 1.5);
  spoil("/measured/tokens", 0);
  spoil("/measured/seconds", -1);
  spoil("/measured/memory", "much");
  spoil("/predicted", nullptr);
  spoil("/adapters", 1);
  spoil("/predicted/seconds", 1);  // without its interval
  bad.push_back(7);
  for (const Json& b : bad) EXPECT_THROW(size_point(b), Error) << b.dump();
  const size_t count = bad.size();
  bad.insert(bad.begin() + 2, good);
  const SizeView view = size_view(run_of(bad));
  EXPECT_EQ(view.ignored, count);
  EXPECT_EQ(view.lines[1].points.size(), 1u);
}

}  // namespace
}  // namespace mw::views
