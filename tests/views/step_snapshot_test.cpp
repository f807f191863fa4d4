// SPDX-License-Identifier: Apache-2.0
#include "core/views/step_snapshot.h"

#include <gtest/gtest.h>

#include "core/views/design_view.h"

namespace mw::views {
namespace {

Ledger held(std::int64_t weights, std::int64_t activations) {
  Ledger ledger;
  ledger[MemoryCategory::weights] = Bytes(weights);
  ledger[MemoryCategory::activations] = Bytes(activations);
  return ledger;
}

// Two devices, four steps of two phases; device 1 holds more in its backward.
RunView two_devices() {
  RunView view;
  view.feed({0, event::Started{Json{{"steps", 4}}}});
  for (long step = 1; step <= 4; ++step) {
    const auto t = static_cast<double>(step);
    view.feed({t, event::Metric{"train/loss", step, 5.0 - t}});
    for (int device = 0; device < 2; ++device) {
      view.feed({t + 0.1, event::Memory{device, step, "forward", held(100, 10 * step + device), Bytes(0)}});
      view.feed({t + 0.5, event::Memory{device, step, "backward", held(100, 50 * step + device), Bytes(0)}});
    }
    view.feed({t + 0.6, event::StepTraffic{step,
                                           {{"all-reduce", "tp", "forward", "partial sums", 0, 2, Bytes(1000 * step),
                                             0.25 * t, 0.125}},
                                           {{Bytes(500 * step), 0.25, 0}, {Bytes(500 * step), 0.25, 0.25}}}});
  }
  return view;
}

TEST(StepSnapshot, ReadsAllValuesOfAStep) {
  const RunView view = two_devices();
  const StepSnapshot m = step_snapshot(view, {2.0, {}});
  EXPECT_EQ(m.step, 2);
  EXPECT_EQ(m.loss, 3.0);
  ASSERT_EQ(m.devices.size(), 2u);
  EXPECT_EQ(m.devices[0].bytes, held(100, 100));  // of the step's largest instant
  EXPECT_EQ(m.devices[1].bytes, held(100, 101));
  EXPECT_EQ(m.devices[1].phase, "backward");
  ASSERT_EQ(m.axes.size(), 1u);
  EXPECT_EQ(m.axes[0].sum.bytes, 2000);
  EXPECT_EQ(m.traffic.seconds, 0.5);
  ASSERT_TRUE(m.devices[1].sent);
  EXPECT_EQ(m.devices[1].sent->waited, 0.25);
}

TEST(StepSnapshot, ReportsEachDeviceWithItsPrediction) {
  RunView view;
  view.feed({0, event::Started{parse_json(
                    R"({"predicted": {"weights": 100, "total": 100, "devices": [{"weights": 100}, {"weights": 80}]}})",
                    "info")}});
  for (int device = 0; device < 2; ++device)
    view.feed({1, event::Memory{device, 1, "step", held(90, device), Bytes(0)}});
  const StepSnapshot m = step_snapshot(view, {});
  ASSERT_EQ(m.devices.size(), 2u);
  EXPECT_EQ(m.devices[0].predicted, held(100, 0));
  EXPECT_FALSE(m.devices[0].beyond_prediction());
  EXPECT_EQ(m.devices[1].predicted, held(80, 0));
  EXPECT_TRUE(m.devices[1].beyond_prediction());
  EXPECT_FALSE(step_snapshot(two_devices(), {}).devices[0].predicted) << "the record says nothing";
}

TEST(StepSnapshot, ATimeSelectsThePhaseThatContainsIt) {
  const RunView view = two_devices();
  const StepSnapshot m = step_snapshot(view, {{}, 3.12});
  EXPECT_EQ(m.step, 3);
  EXPECT_EQ(m.devices[0].phase, "forward");
  EXPECT_EQ(m.devices[0].bytes, held(100, 30));
  EXPECT_EQ(m.axes[0].sum.bytes, 3000);
}

TEST(StepSnapshot, WithoutAPositionItIsTheLatest) {
  const RunView view = two_devices();
  const StepSnapshot m = step_snapshot(view, {});
  EXPECT_EQ(m.step, 4);
  EXPECT_EQ(m.loss, 1.0);
  EXPECT_EQ(m.devices[0].bytes, held(100, 200));
  EXPECT_EQ(m.traffic.bytes, 4000);
}

TEST(StepSnapshot, BetweenTwoStepsTheNearerIsUsed) {
  const RunView view = two_devices();
  EXPECT_EQ(step_snapshot(view, {2.4, {}}).devices[0].bytes, step_snapshot(view, {2.0, {}}).devices[0].bytes);
  EXPECT_EQ(step_snapshot(view, {2.6, {}}).traffic.bytes, 3000);
}

TEST(StepSnapshot, ConvertsBetweenStepAndTime) {
  const RunView view = two_devices();
  EXPECT_EQ(time_of_step(view, 3), 3.5);
  EXPECT_EQ(step_of_time(view, 3.5), 3.0);
  EXPECT_FALSE(time_of_step(RunView(), 1));
}

TEST(StepSnapshot, OneDeviceHasNoTraffic) {
  RunView view;
  view.feed({1, event::Memory{0, 1, "backward", held(1, 2), Bytes(3)}});
  const StepSnapshot m = step_snapshot(view, {});
  EXPECT_FALSE(m.has_traffic);
  EXPECT_TRUE(m.axes.empty());
  EXPECT_EQ(m.devices.size(), 1u);
  EXPECT_EQ(largest_device(view), 0);
  EXPECT_FALSE(largest_device(RunView()));
}

TEST(StepSnapshot, LargestDeviceHasTheLargestPeak) {
  EXPECT_EQ(largest_device(two_devices()), 1);
}

TEST(StepSnapshot, FormatsOneLine) {
  EXPECT_EQ(to_text(step_snapshot(two_devices(), {2.0, {}})),
            "step 2: loss 3; largest device 1, 201 B (backward); moved 1.95 KiB in 500 ms, 125 ms of it waiting");
}

TEST(DeviceGrid, PlacesTwoAxesAsRowsAndColumns) {
  const DeviceGrid g = device_grid({{{"fsdp", 2}, {"tp", 4}}});
  EXPECT_EQ(g.rows, 2);
  EXPECT_EQ(g.columns, 4);
  ASSERT_EQ(g.devices.size(), 8u);
  EXPECT_EQ(g.devices[5].row, 1);
  EXPECT_EQ(g.devices[5].column, 1);
  EXPECT_EQ(g.devices[5].name, "fsdp 1, tp 1");
  EXPECT_EQ(g.edges.size(), 4u + 6u);  // four pairs along fsdp, two rows of three along tp
}

TEST(DeviceGrid, IgnoresAxesOfSizeOne) {
  const DeviceGrid g = device_grid({{{"fsdp", 4}, {"tp", 1}}});
  EXPECT_EQ(g.rows, 1);
  EXPECT_EQ(g.columns, 4);
  EXPECT_EQ(g.devices[3].name, "fsdp 3");
  for (const DeviceEdge& e : g.edges) EXPECT_EQ(e.axis, 0);
}

TEST(DeviceGrid, EveryDeviceHasItsOwnPosition) {
  for (const mesh::Mesh& m :
       {mesh::Mesh{{{"data", 2}, {"fsdp", 2}, {"tp", 2}}}, mesh::Mesh{{{"a", 3}, {"b", 5}}}, mesh::Mesh{}}) {
    const DeviceGrid g = device_grid(m);
    std::vector<bool> taken(static_cast<size_t>(g.rows * g.columns));
    ASSERT_EQ(g.devices.size(), taken.size());
    for (const GridDevice& d : g.devices) taken[static_cast<size_t>(d.row * g.columns + d.column)] = true;
    EXPECT_EQ(std::count(taken.begin(), taken.end(), true), g.rows * g.columns);
  }
}

}  // namespace
}  // namespace mw::views
