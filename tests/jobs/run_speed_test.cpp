// SPDX-License-Identifier: GPL-3.0-or-later
// A finished training corrects the plans of this machine: its own plan then takes what its steps took.
#include <gmock/gmock.h>

#include "core/jobs/job.h"
#include "core/plan/experiment/experiment_plan.h"
#include "tests/base/scratch.h"
#include "tests/jobs/quick_experiment.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Measured {
  RunState state{};
  std::vector<double> speeds{};
  std::string warnings{}, notes{};
};

// Stops itself after `steps`.
Measured run_measured(const experiment::Experiment& e, const fs::path& folder, long steps = 1000) {
  std::stop_source stop;
  Measured out;
  const JobRequest request{
      .experiment = e,
      .runs_folder = folder / "runs",
      .resume = {},
      .context = plan::load_once([&] { return plan::PlanContext::load(MW_RESOURCES "/hardware", folder / "own"); }),
      .hardware_folder = folder / "own"};
  out.state = run_blocking(
                  request,
                  [&](const Event& event) {
                    if (const auto* log = std::get_if<event::Log>(&event.body))
                      (log->level == "warning" ? out.warnings : out.notes) += log->text + "\n";
                    const auto* m = std::get_if<event::Metric>(&event.body);
                    if (!m || m->name != "train/tokens_per_second") return;
                    if (m->step > 1) out.speeds.push_back(m->value);
                    if (m->step >= steps) stop.request_stop();
                  },
                  stop.get_token())
                  .finished.state;
  return out;
}

plan::Plan planned(const experiment::Experiment& e, const fs::path& folder) {
  const plan::PlanContext context = plan::PlanContext::load(MW_RESOURCES "/hardware", folder / "own");
  return plan::plan_experiment(e, context).plan;
}

TEST(RunSpeed, ThePlanOfAFinishedRunTakesWhatItsStepsTook) {
  for (const std::vector<std::string>& mesh :
       {std::vector<std::string>{}, {"mesh.fsdp=2", "mesh.tp=1"}, {"mesh.fsdp=1", "mesh.tp=2"}}) {
    const test::Scratch folder;
    experiment::Experiment e = test::quick_experiment(folder.path());
    experiment::apply_sets(e, mesh);
    const plan::Plan before = planned(e, folder.path());
    EXPECT_THAT(before.step.compute.source, HasSubstr("bench --save"));
    const Measured run = run_measured(e, folder.path());
    ASSERT_EQ(run.state, RunState::done);
    const plan::Plan after = planned(e, folder.path());
    const double median = formats::percentile_of(run.speeds, 50);
    const std::vector<plan::MeasuredRun> runs = plan::own_measurements(folder.path() / "own").runs;
    if (runs.empty()) {  // other programs made its steps more uneven than the rates of the processor's class are
      EXPECT_THAT(run.notes, HasSubstr("the rates of its class"));
      EXPECT_EQ(after.step.seconds.value, before.step.seconds.value);
      continue;
    }
    EXPECT_NEAR(after.run.tokens_per_second, median, 1e-6 * median);
    const double interval = after.step.seconds.high / after.step.seconds.value;
    const double spread = 1 + std::max(0.15, runs.front().spread);
    EXPECT_GT(interval, mesh.empty() ? 0.99 * spread : 1.05);  // waits of devices have no interval
    EXPECT_LT(interval, 1.15 * spread);
    EXPECT_GT(before.step.seconds.high / before.step.seconds.low, 2);
    EXPECT_THAT(after.step.compute.source, HasSubstr("measured here in run-1, "));
    // A longer run of other rows is corrected by it, too; other weights are not.
    e.set("train.dtype", "bf16");
    EXPECT_THAT(planned(e, folder.path()).step.compute.source, HasSubstr("bench --save"));
  }
}

TEST(RunSpeed, ARunThatStopsInItsFirstStepsSaysNothing) {
  const test::Scratch folder;
  const experiment::Experiment e = test::quick_experiment(folder.path());
  EXPECT_EQ(run_measured(e, folder.path(), 3).state, RunState::cancelled);
  EXPECT_TRUE(plan::own_measurements(folder.path() / "own").runs.empty());
  EXPECT_EQ(run_measured(e, folder.path(), 12).state, RunState::cancelled);
  const std::vector<plan::MeasuredRun> runs = plan::own_measurements(folder.path() / "own").runs;
  if (runs.empty()) return;  // its steps were too uneven
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.front().run, "run-2");
}

TEST(RunSpeed, ADamagedFileIsKeptAndTheRunWarns) {
  const test::Scratch folder;
  const experiment::Experiment e = test::quick_experiment(folder.path());
  folder.put("own/machine.json", "{");
  const Measured run = run_measured(e, folder.path());
  EXPECT_EQ(run.state, RunState::done);
  EXPECT_THAT(run.warnings, HasSubstr("machine.json"));
  EXPECT_EQ(read_file(folder.path() / "own" / "machine.json"), "{");
}

}  // namespace
}  // namespace mw::jobs
