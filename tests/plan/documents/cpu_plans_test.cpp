// SPDX-License-Identifier: GPL-3.0-or-later
// Plans and searches of this machine: a row of a search is the plan of its settings, a server is planned on the device
// that serves it, and what a run refuses the plan refuses, too.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/plan/document/diagnostics.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/document/simulated_server.h"
#include "core/plan/experiment/search_experiment.h"
#include "tests/plan/documents/planned.h"

namespace mw::plan {
namespace {

using experiment::Experiment;
using test::context;
using test::error_of_plan;
using test::shipped_example;

using Sets = std::vector<std::string>;

Experiment with(Experiment e, const Sets& sets) {
  experiment::apply_sets(e, sets);
  return e;
}

// Every step-th candidate as `plan` answers for the document with its edits.
void expect_rows_are_plans(const Experiment& e, const ExperimentSearch& found, size_t step) {
  const auto& all = found.result.candidates;
  ASSERT_FALSE(all.empty());
  for (size_t i = 0; i < all.size(); i += step) {
    Experiment edited = e;
    for (const lint::Edit& edit : edits_to(found, plan::choice_of(found.request), all[i].choice))
      plan::apply(edited, {.edits = {edit}});
    SCOPED_TRACE(plan::to_text(all[i].choice, found.request.work) + "\n" + edited.text());
    const plan::Plan plan = plan_experiment(edited, context()).plan;
    EXPECT_EQ(plan.memory.at_peak.total(), all[i].peak);
    EXPECT_DOUBLE_EQ(plan.step.seconds.value, all[i].seconds);
    EXPECT_DOUBLE_EQ(plan.run.tokens_per_second, all[i].tokens_per_second);
  }
}

TEST(CpuPlans, ARowOfATrainingSearchIsThePlanOfItsSettings) {
  for (const Sets& sets : {Sets{}, Sets{"mesh.fsdp=2", "mesh.tp=2"}, Sets{"data.packing=true", "train.batch=4"}}) {
    const Experiment e = with(shipped_example("tiny-lora"), sets);
    const ExperimentSearch found = search_experiment(e, {}, context(), {});
    EXPECT_TRUE(found.fits);
    std::set<std::int64_t> peaks;
    for (const plan::Candidate& c : found.result.candidates) {
      peaks.insert(c.peak.value);
      EXPECT_EQ(c.choice.mesh.devices(), found.request.mesh.devices());
      EXPECT_EQ(c.choice.stack, model::Stack::engine);
      EXPECT_EQ(c.choice.attention, found.request.profile.attention);
    }
    EXPECT_GT(peaks.size(), 5U);
    expect_rows_are_plans(e, found, 1 + found.result.candidates.size() / 12);
  }
}

TEST(CpuPlans, ARowOfAServingSearchIsThePlanOfItsSettings) {
  const Experiment e = with(shipped_example("tiny-serve"), {"mesh.tp=2"});
  const ExperimentSearch found = search_experiment(e, {}, context(), {});
  std::set<std::int64_t> peaks;
  for (const plan::Candidate& c : found.result.candidates) peaks.insert(c.peak.value);
  EXPECT_EQ(peaks.size(), found.result.candidates.size()) << "one for each number of sequences";
  EXPECT_EQ(found.cells.size(), found.result.candidates.size());
  EXPECT_EQ(found.not_simulated, "");
  expect_rows_are_plans(e, found, 1);
}

TEST(CpuPlans, CellsOfAServingSearchAreTheSimulatedSweep) {
  const Experiment e = with(shipped_example("tiny-serve"), {"sweep.backend=model", "sweep.num_prompts=8"});
  const ExperimentSearch found = search_experiment(e, {}, context(), {});
  const auto own = std::find_if(found.cells.begin(), found.cells.end(),
                                [&](const ServingCell& cell) { return cell.choice == plan::choice_of(found.request); });
  ASSERT_NE(own, found.cells.end());
  const auto points = plan::simulated_sweep(e, context(), [](long) {}, {});
  ASSERT_EQ(own->points.size(), points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(own->points[i].ttft.median, points[i].ttft.median);
    EXPECT_EQ(own->points[i].tpot.median, points[i].tpot.median);
  }
}

// A server that is never busy with two requests has the times of the plan; a full one, its tokens per second. Its
// intervals are those of the rates, not those of servers elsewhere.
TEST(CpuPlans, SimulatedSweepsHaveTheStepTimesOfThePlan) {
  const Experiment e =
      with(shipped_example("tiny-serve"), {"sweep.backend=model", "sweep.input_lens=[256]", "sweep.num_prompts=200"});
  const ExperimentPlan p = plan_experiment(e, context());
  const formats::BenchPoint idle = plan::simulated_point(e, {.input_len = 256}, context(), plan::Queueing::none);
  EXPECT_NEAR(idle.ttft.median / 1e3 / p.plan.serve->ttft.value, 1, 0.03);  // the plan waits for half a step
  const formats::BenchPoint full =
      plan::simulated_point(e, {.request_rate = std::numeric_limits<double>::infinity(), .input_len = 256}, context());
  EXPECT_NEAR(full.output_throughput / p.plan.run.tokens_per_second, 1, 0.1);
  const plan::Efficiency& rate = p.request.efficiencies.matmul;
  const auto points = plan::simulated_sweep(e, context(), [](long) {}, {});
  EXPECT_NEAR(points[0].rest["median_tpot_ms_high"].get<double>() / points[0].tpot.median, rate.value / rate.low, 1e-9);
}

TEST(CpuPlans, ATargetThatTheDocumentCannotHaveIsNamedAndTheOthersAreSearched) {
  const Experiment e = with(shipped_example("paper-serve-v6e-8"), {"serve.kv_gib=4"});
  std::vector<double> shares;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    shares.push_back(static_cast<double>(done) / static_cast<double>(total));
  };
  const ExperimentSearch found = search_experiment(e, {"cpu", "v6e-4"}, context(), {.progress = progress}, {}, 10'000);
  EXPECT_FALSE(found.result.candidates.empty());
  const auto& without = found.result.without_plan;
  const auto here = std::find_if(without.begin(), without.end(), [](const auto& n) { return n.target == "cpu"; });
  ASSERT_NE(here, without.end());
  EXPECT_THAT(here->reason, testing::HasSubstr("serve.kv_gib"));
  EXPECT_TRUE(searched_json(found, 1)["without_plan"].back()["stack"].is_null());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end())) << "with replicas and simulations, too";
  EXPECT_EQ(shares.back(), 1);
  EXPECT_THROW(search_experiment(e, {"zz"}, context(), {}), Error);
}

TEST(CpuPlans, AStoppedSearchNamesTheSearch) {
  std::stop_source stop;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    if (2 * done > total) stop.request_stop();  // while sweeps are simulated
  };
  try {
    search_experiment(shipped_example("paper-serve-v6e-8"), {}, context(), {.progress = progress}, stop.get_token());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().message, "the search was cancelled");
  }
}

TEST(CpuPlans, OneDeviceIsOfferedMoreOnesIfALimitHoldsForEach) {
  Experiment e = with(shipped_example("tiny-lora"), {"target.memory_gib=0.05"});
  const auto offers = [&](const char* key) {
    for (const plan::Diagnostic& d : plan_experiment(e, context()).diagnosis.found)
      for (const lint::Fix& fix : d.fixes)
        if (std::any_of(fix.edits.begin(), fix.edits.end(), [&](const auto& edit) { return edit.key == key; }))
          return true;
    return false;
  };
  EXPECT_TRUE(offers("mesh.tp") || offers("mesh.fsdp"));
  e.set("target.memory_gib", "0.001");
  const std::string text = planned_text(plan_experiment(e, context()));
  EXPECT_THAT(text, testing::HasSubstr("the activations hold 53.0 MiB: a smaller batch"));
  EXPECT_THAT(text, testing::HasSubstr("target.memory_gib=0.07"));
}

TEST(CpuPlans, AServingSearchSimulatesThisMachineBesideOtherTargets) {
  const Experiment e = with(shipped_example("tiny-serve"), {"target.id=v6e-1", "model.path=", "model.id=gemma3-270m",
                                                            "sweep.backend=model", "sweep.num_prompts=8"});
  const ExperimentSearch found = search_experiment(e, {"cpu"}, context(), {});
  EXPECT_EQ(found.cells.size(), found.result.candidates.size());
  EXPECT_TRUE(std::any_of(found.cells.begin(), found.cells.end(),
                          [](const ServingCell& cell) { return cell.choice.stack == model::Stack::engine; }));
}

// load_served() serves a mesh on one device with all threads and the memory of all devices.
TEST(CpuPlans, AServerOfAMeshIsThatOfOneDevice) {
  const Experiment one = shipped_example("tiny-serve"), eight = with(one, {"mesh.fsdp=2", "mesh.tp=4"});
  const ExperimentPlan a = plan_experiment(one, context()), b = plan_experiment(eight, context());
  EXPECT_EQ(a.plan.memory.at_peak.total(), b.plan.memory.at_peak.total());
  EXPECT_EQ(a.plan.memory.capacity, b.plan.memory.capacity);
  EXPECT_DOUBLE_EQ(a.plan.step.seconds.value, b.plan.step.seconds.value);
  EXPECT_EQ(b.plan.devices, 1);
  EXPECT_EQ(plan_experiment(with(eight, {"target.memory_gib=1"}), context()).plan.memory.capacity,
            plan_experiment(with(one, {"target.memory_gib=8"}), context()).plan.memory.capacity);
}

TEST(CpuPlans, RefusesWhatARunRefuses) {
  for (const char* example : {"tiny-lora", "paper-train-v5p-8"})
    EXPECT_EQ(error_of_plan(with(shipped_example(example), {"lora.targets=[]", "lora.module_path="})).id, "LORA")
        << example;
  EXPECT_EQ(error_of_plan(with(shipped_example("tiny-serve"), {"serve.max_model_len=2048"})).id, "CONTEXT");
}

TEST(CpuPlans, RowsBeyondTheContextAreRefusedAsByARun) {
  for (const char* packing : {"data.packing=false", "data.packing=true"}) {
    const Experiment e = with(shipped_example("tiny-lora"), {"data.max_len=2048", packing});
    const std::vector<Problem> refusals = plan_experiment(e, context()).plan.refusals;
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_EQ(refusals.front().id, "CONTEXT");
    EXPECT_THROW(search_experiment(e, {}, context(), {}), Error);
  }
  const Experiment size = with(shipped_example("tiny-lora"), {"kind=size", "size.new_tokens=4000"});
  const std::vector<Problem> problems = plan_experiment(size, context()).plan.problems;
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.id == "CONTEXT"; }));
}

TEST(CpuPlans, HaveNoCostWithoutAPrice) {
  const Json json = planned_json(plan_experiment(shipped_example("tiny-serve"), context()));
  EXPECT_TRUE(json["serve"]["usd_per_million_output_tokens"].is_null());
  EXPECT_TRUE(json["run"]["usd_per_million_tokens"].is_null());
}

TEST(CpuPlans, ACalibrationLeavesThisMachineAsItIs) {
  plan::PlanContext calibrated = context();
  calibrated.calibration.factors.push_back(
      {.stack = model::Stack::engine,
       .chip = "cpu",
       .vendor = hardware::Vendor::cpu,
       .name = "matmul",
       .value = 2,
       .low = 2,
       .high = 2,
       .basis = plan::CalibrationBasis{"2026-11-29", "run-1", plan::CalibrationAuthor::user}});
  const auto seconds = [](const char* example, const plan::PlanContext& own) {
    return plan_experiment(shipped_example(example), own).plan.step.seconds.value;
  };
  for (const char* example : {"tiny-serve", "tiny-lora"})
    EXPECT_DOUBLE_EQ(seconds(example, calibrated), seconds(example, context()));
}

// A run whose micro-batches hold more rows than the data has: every trial reads them once, and trials are bounded.
TEST(CpuPlans, FixesOfAHugeBatchAreFoundFromFewTrials) {
  const Experiment e = with(shipped_example("tiny-lora"), {"train.batch=65536", "target.memory_gib=0.2"});
  Request request = plan_request(e, context());
  read_rows(e.config(), request);
  const std::vector<lint::Fix> fixes = plan::fixes_that_fit(e, context(), request, predict(request));
  ASSERT_FALSE(fixes.empty());
  for (const lint::Fix& fix : fixes) {
    Experiment fixed = e;
    plan::apply(fixed, fix);
    EXPECT_EQ(plan_experiment(fixed, context()).plan.memory.at_peak.total(), fix.outcome->peak) << fix.label;
  }
}

}  // namespace
}  // namespace mw::plan
