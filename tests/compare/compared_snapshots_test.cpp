// SPDX-License-Identifier: GPL-3.0-or-later
// Two training runs at one playhead, by step and by time.
#include "core/compare/compared_snapshots.h"

#include <gtest/gtest.h>

namespace mw::compare {
namespace {

// A run of `steps` steps of `pace` seconds each, whose loss is `from` - step.
ComparedRun run_of(const std::string& name, long steps, double pace, double from) {
  views::RunView view;
  view.feed({0, event::Started{Json{{"steps", steps}}}});
  Ledger bytes;
  for (long step = 1; step <= steps; ++step) {
    const double t = pace * static_cast<double>(step);
    bytes[MemoryCategory::activations] = Bytes(100 * step);
    view.feed({t, event::Metric{"train/loss", step, from - static_cast<double>(step)}});
    view.feed({t, event::Metric{"train/grad_norm", step, 0.5}});
    view.feed({t, event::Memory{0, step, "step", bytes, bytes.total()}});
    if (step % 2 == 0) view.feed({t, event::Metric{"eval/loss", step, from}});
  }
  ComparedRun out{.name = name};
  out.training = std::move(view);
  return out;
}

TEST(Snapshots, AreAtTheSameStep) {
  const std::vector<ComparedRun> runs{run_of("slow", 10, 2, 20), run_of("fast", 6, 1, 30)};
  const auto at = snapshots_at(runs, {5.0, {}});
  ASSERT_EQ(at.size(), 2u);
  EXPECT_EQ(at[0].step, 5);
  EXPECT_EQ(at[0].loss, 15);
  EXPECT_EQ(at[1].loss, 25);
  EXPECT_EQ(at[1].eval_loss, 30);
  EXPECT_EQ(at[0].time_s, 10);
  EXPECT_EQ(at[1].time_s, 5);
  EXPECT_EQ(at[0].memory, Bytes(500));
  EXPECT_EQ(at[0].gradient_norm, 0.5);
  EXPECT_FALSE(at[0].learning_rate || at[0].moved || at[0].ended || at[1].ended);
}

TEST(Snapshots, AreAtTheSameTime) {
  const std::vector<ComparedRun> runs{run_of("slow", 10, 2, 20), run_of("fast", 6, 1, 30)};
  const auto at = snapshots_at(runs, {{}, 4.0});
  EXPECT_EQ(at[0].step, 2);
  EXPECT_EQ(at[1].step, 4);
  EXPECT_EQ(at[1].loss, 26);
}

TEST(Snapshots, SayThatARunHasEnded) {
  const std::vector<ComparedRun> runs{run_of("slow", 10, 2, 20), run_of("fast", 6, 1, 30)};
  const auto at = snapshots_at(runs, {9.0, {}});
  EXPECT_FALSE(at[0].ended);
  EXPECT_TRUE(at[1].ended);
  EXPECT_EQ(at[1].step, 6);
  EXPECT_TRUE(snapshots_at(runs, {{}, 12.0})[1].ended);
  EXPECT_EQ(snapshots_at(runs, {})[0].step, 10);
  const Json json = to_json(at, {"slow", "fast"});
  EXPECT_EQ(json[1]["name"], "fast");
  EXPECT_EQ(json[1]["ended"], true);
  EXPECT_EQ(json[1]["moved_bytes"], nullptr);
}

TEST(Snapshots, LeaveOutWhatIsNoTrainingRun) {
  ComparedRun sweep{.name = "sweep"};
  sweep.sweep.emplace();
  const auto at = snapshots_at({sweep, run_of("a", 3, 1, 9)}, {1.0, {}});
  ASSERT_EQ(at.size(), 1u);
  EXPECT_EQ(at[0].column, 1u);
}

TEST(Snapshots, MetricsAreDrawnOverTheTimeOfTheirSteps) {
  const ComparedRun run = run_of("slow", 4, 2, 20);
  const views::Series by_time = metric_by_time(*run.training, run.training->metric("train/loss")->raw);
  ASSERT_EQ(by_time.size(), 4u);
  EXPECT_EQ(by_time[2].x, 6);
  EXPECT_EQ(by_time[2].y, 17);
}

}  // namespace
}  // namespace mw::compare
