// SPDX-License-Identifier: GPL-3.0-or-later
// What runs cost: time times price, with the time of simulated sweeps told apart.
#include "core/plan/experiment/costing.h"

#include "core/import/import_files.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::plan {
namespace {

using test::context;

class RunCostTest : public testing::Test {
 protected:
  store::RunId train(const std::vector<std::pair<std::string, std::string>>& sets, double seconds) {
    experiment::Experiment e;
    for (const auto& [key, value] : sets) e.set(key, value);
    const store::RunId run = store.create(e, "");
    store.append(run, {seconds, event::Finished{RunState::done, 1, 1, seconds, Bytes(1), "", Json()}});
    return run;
  }
  std::optional<RunCost> cost(const store::RunId& run) { return run_cost(store, *store.find(run), context()); }
  const test::Scratch folder;
  store::Store store{folder.path()};
};

TEST_F(RunCostTest, OfMeasuredTrainingIsTimeTimesThePriceOfAllChips) {
  const auto own = cost(train({{"target.id", "v5p-8"}, {"price.usd_per_chip_hour", "3"}}, 1800));
  ASSERT_TRUE(own);
  EXPECT_DOUBLE_EQ(own->usd, 0.5 * 3 * 4);  // v5p-8 has four chips
  EXPECT_FALSE(own->is_predicted);
  const auto listed = cost(train({{"target.id", "v5p-8"}}, 3600));
  ASSERT_TRUE(listed);
  EXPECT_DOUBLE_EQ(listed->usd, context().catalogue.price("v5p")->usd_per_chip_hour * 4);
}

TEST_F(RunCostTest, OfThisMachineIsUnknownWithoutAPrice) {
  EXPECT_FALSE(cost(train({}, 100)));
  EXPECT_FALSE(cost(train({{"target.id", "v5p-8"}}, 0)));
  EXPECT_FALSE(cost(train({{"target.id", "v99-1"}}, 100)));
  const auto virtual_devices =
      cost(train({{"mesh.fsdp", "2"}, {"mesh.tp", "4"}, {"price.usd_per_chip_hour", "0.1"}}, 3600));
  ASSERT_TRUE(virtual_devices);
  EXPECT_DOUBLE_EQ(virtual_devices->usd, 0.8);
}

TEST_F(RunCostTest, OfASimulatedSweepIsPredicted) {
  experiment::Experiment e;
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"kind", "serve"}, {"target.id", "v6e-8"}, {"sweep.backend", "model"}, {"price.usd_per_chip_hour", "2"}})
    e.set(key, value);
  formats::BenchSet set{.name = "simulated"};
  set.points.resize(2);
  set.points[0].duration_s = 100;
  set.points[1].duration_s = 80;
  const auto simulated = cost(importing::record_set(store, e, set, "predicted"));
  ASSERT_TRUE(simulated);
  EXPECT_DOUBLE_EQ(simulated->usd, 180.0 / 3600 * 2 * 8);
  EXPECT_TRUE(simulated->is_predicted);
}

}  // namespace
}  // namespace mw::plan
