// SPDX-License-Identifier: GPL-3.0-or-later
// A finished run becomes a row that the planner's efficiencies are fitted to.
#include "core/audit/calibrating.h"

#include <cmath>

#include "core/plan/calibration/calibrate.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::audit {
namespace {

using test::Scratch;

using test::context;

store::RunId run_with(store::Store& store, const std::vector<double>& rates) {
  const store::RunId run =
      store.create(experiment::Experiment::load(std::string(MW_RESOURCES) + "/examples/tiny-lora.json"), "measured");
  store.append(run, {0, event::Started{Json{{"steps", 300}}}});
  long step = 0;
  for (const double rate : rates)
    store.append(run, {static_cast<double>(step), event::Metric{"train/tokens_per_second", ++step, rate}});
  store.flush();
  return run;
}

TEST(MeasuredRun, IsTheMedianOfTheStepsAfterTheFirst) {
  const Scratch folder;
  store::Store store(folder.path());
  const plan::Measurement m = measured_run(store, run_with(store, {5, 900, 1000, 1100, 40}), context());
  EXPECT_DOUBLE_EQ(m.value, 1000);
  EXPECT_EQ(m.purpose, plan::MeasurementUse::holdout);
  EXPECT_EQ(m.request.target.id, "cpu");
  EXPECT_EQ(m.request.stack, model::Stack::engine);
  EXPECT_EQ(m.request.lora.rank, 8);
}

TEST(MeasuredRun, RejectsRunsWithTooFewSteps) {
  const Scratch folder;
  store::Store store(folder.path());
  EXPECT_THROW(measured_run(store, run_with(store, {1000, 1000}), context()), Error);
  EXPECT_THROW(measured_run(store, "run-99", context()), Error);
  const store::RunId failed = run_with(store, {1000, 1000, 1000});
  event::Finished end;
  end.state = RunState::failed;
  store.finish(failed, 9, end);
  EXPECT_THROW(measured_run(store, failed, context()), Error);
}

}  // namespace
}  // namespace mw::audit
