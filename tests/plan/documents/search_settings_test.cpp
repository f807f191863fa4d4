// SPDX-License-Identifier: GPL-3.0-or-later
// The search of an experiment: settings beside the sharding are choices, too, and a candidate is the plan that its
// edits make.
#include <gtest/gtest.h>

#include <set>

#include "core/plan/document/diagnostics.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/experiment/search_experiment.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

using test::context;
experiment::Experiment example_named(const std::string& name) {
  return experiment::Experiment::load(std::filesystem::path(MW_RESOURCES) / "examples" / (name + ".json"));
}

TEST(SearchSettings, PaperExperimentHasAThousandDifferentPlans) {
  const ExperimentSearch found = search_experiment(example_named("paper-train-v5p-8"), {}, context(), {});
  std::set<std::tuple<double, double, std::int64_t>> different;
  std::set<model::Stack> stacks;
  std::set<plan::RowLayout> layouts;
  for (const plan::Candidate& c : found.result.candidates) {
    different.insert({c.seconds, c.tokens_per_second, c.peak.value});
    stacks.insert(c.choice.stack);
    layouts.insert(c.choice.rows);
  }
  EXPECT_GE(different.size(), 1000U);
  EXPECT_EQ(stacks, (std::set<model::Stack>{model::Stack::tunix, model::Stack::torchax}));
  EXPECT_EQ(layouts.size(), 2U);
}

TEST(SearchSettings, ParetoFrontComesFirst) {
  const ExperimentSearch found = search_experiment(example_named("paper-train-v5p-8"), {}, context(), {});
  bool dominated = false;
  for (const plan::Candidate& c : found.result.candidates) {
    EXPECT_FALSE(dominated && c.pareto) << plan::to_text(c.choice, plan::Work::train);
    dominated = dominated || !c.pareto;
  }
  EXPECT_TRUE(found.result.candidates.front().pareto);
}

TEST(SearchSettings, CandidateIsThePlanOfItsEdits) {
  for (const char* example : {"paper-train-v5p-8", "paper-train-2xh100"}) {
    const experiment::Experiment e = example_named(example);
    const ExperimentSearch found = search_experiment(e, {"v6e-8"}, context(), {});
    const auto& all = found.result.candidates;
    ASSERT_FALSE(all.empty());
    for (size_t i = 0; i < all.size(); i += 1 + all.size() / 40) {
      experiment::Experiment edited = e;
      plan::apply(edited,
                  {.label = "", .cost = "", .edits = edits_to(found, plan::choice_of(found.request), all[i].choice)});
      const plan::Plan plan = plan::predict(plan_request(edited, context()));
      const std::string text = all[i].choice.target + ": " + plan::to_text(all[i].choice, plan::Work::train);
      EXPECT_DOUBLE_EQ(plan.step.seconds.value, all[i].seconds) << text;
      EXPECT_EQ(plan.memory.at_peak.total(), all[i].peak) << text;
      EXPECT_NEAR(plan.run.hours.value, all[i].hours, 1e-9 * all[i].hours) << text;
      EXPECT_NEAR(plan.run.usd.value, all[i].usd, 1e-9 * all[i].usd) << text;
    }
  }
}

}  // namespace
}  // namespace mw::plan
