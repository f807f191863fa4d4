// SPDX-License-Identifier: Apache-2.0
// The shipped examples planned, against what was published of them; nothing is tuned to these figures.
#include "core/plan/experiment/experiment_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "core/plan/calibration/measurements.h"
#include "core/plan/experiment/predict_sizes.h"
#include "core/plan/experiment/search_experiment.h"
#include "core/plan/request/local_model.h"

#include "tests/plan/documents/planned.h"

namespace mw::plan {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

using test::context;
using test::error_of_plan;
using test::shipped_example;

ExperimentPlan planned(const std::string& name) {
  return plan_experiment(shipped_example(name), context());
}

TEST(Paper, StepTimesAreWithinAQuarterAndTheirRatioWithin15Percent) {
  const ExperimentPlan tpu = planned("paper-train-v5p-8"), gpu = planned("paper-train-2xh100");
  const double a = tpu.plan.step.seconds.value, b = gpu.plan.step.seconds.value;
  RecordProperty("v5p_8_seconds", std::to_string(a));
  RecordProperty("2xh100_seconds", std::to_string(b));
  EXPECT_NEAR(a / 9.67, 1, 0.25) << a;
  EXPECT_NEAR(b / 15.5, 1, 0.25) << b;
  EXPECT_NEAR(b / a / 1.61, 1, 0.15) << b / a;
  EXPECT_TRUE(tpu.plan.fits());
  EXPECT_TRUE(gpu.plan.fits());
}

TEST(Paper, PlanFindsTheSequenceLengthNearestToTheMeasurement) {
  for (const char* name : {"paper-train-v5p-8", "paper-train-2xh100"}) {
    const ExperimentPlan p = planned(name);
    ASSERT_EQ(p.guesses.size(), 2u) << name;
    EXPECT_EQ(p.guesses[0].max_len, 4096) << name;
    EXPECT_EQ(p.guesses[1].max_len, 3072) << name;
    EXPECT_LT(std::abs(p.guesses[0].off), std::abs(p.guesses[1].off)) << name;
    EXPECT_THAT(p.problems,
                Contains(Field(&Problem::message, HasSubstr("4096 tokens fit the measured step time best"))));
  }
}

TEST(Paper, MostTokensArePaddingAndPackingSavesMostOfTheCost) {
  const ExperimentPlan p = planned("paper-train-v5p-8");
  EXPECT_NEAR(p.plan.run.real_share, 922.0 / 4096, 0.01);
  EXPECT_NEAR(p.plan.run.packed_speedup, 4096.0 / 922, 0.2);
  EXPECT_THAT(p.problems, Contains(Field(&Problem::id, "PAD-1")));
}

TEST(Paper, CostsAreExactFromTheSameHours) {
  const ExperimentPlan tpu = planned("paper-train-v5p-8"), gpu = planned("paper-train-2xh100");
  ASSERT_TRUE(tpu.measured_tco && gpu.measured_tco);
  EXPECT_NEAR(tpu.measured_tco->train().value, 56.11, 0.005);
  EXPECT_NEAR(gpu.measured_tco->train().value, 119.23, 0.005);
  EXPECT_DOUBLE_EQ(tpu.plan.run.usd.value, tpu.plan.run.hours.value * 16.80);
  EXPECT_DOUBLE_EQ(gpu.plan.run.usd.value, gpu.plan.run.hours.value * 22.12);
  const PlanComparison against = plan::against(tpu, gpu);
  ASSERT_EQ(against.rows.size(), 6u);
  const std::vector<std::array<double, 2>> paper{{77.63, 141.35}, {228.27, 296.19}, {572.59, 650.11}};
  for (size_t i = 0; i < 3; ++i) {
    const PlanComparison::Row& row = against.rows[3 + i];
    EXPECT_TRUE(row.measured);
    EXPECT_NEAR(row.usd, paper[i][0], 0.011);
    EXPECT_NEAR(row.other_usd, paper[i][1], 0.011);
  }
  EXPECT_NEAR(against.rows[3].ratio(), 1.82, 0.005);  // one hour of serving
  EXPECT_NEAR(against.rows[5].ratio(), 1.14, 0.005);  // a day
  EXPECT_FALSE(against.break_even_hours);
  // "1.61x faster at 2.12x lower cost", recomputed from the measured runs.
  ASSERT_TRUE(against.measured);
  EXPECT_NEAR(against.measured->step_ratio, 1.60, 0.005);
  EXPECT_NEAR(against.measured->run_ratio, 1.61, 0.005);
  EXPECT_NEAR(against.measured->cost_ratio, 2.12, 0.006);
  EXPECT_NEAR(against.measured->usd, 56.11, 0.005);
  EXPECT_NEAR(against.measured->other_usd, 119.23, 0.005);
  const Json j = against_json(against);
  EXPECT_EQ(j["measured"]["run_ratio"], against.measured->run_ratio);
  EXPECT_EQ(j["run_ratio"], against.run_ratio);
  EXPECT_THAT(against_text(against),
              HasSubstr("measured       1.60 x     1.61 x     2.12 x  ($119.23 against $56.11)"));
  EXPECT_THAT(against_text(against), HasSubstr("no break-even"));
}

TEST(Paper, MeasuredFiguresAreThoseOfTheMeasurements) {
  const plan::Measurements shipped =
      plan::read_measurements(MW_RESOURCES "/hardware/measurements.json", context().catalogue);
  for (const auto& [row, example] :
       {std::pair{"paper-v5p-8-4096", "paper-train-v5p-8"}, std::pair{"paper-2xh100-4096", "paper-train-2xh100"}}) {
    const auto at = std::find_if(shipped.rows.begin(), shipped.rows.end(), [&](const auto& m) { return m.id == row; });
    ASSERT_NE(at, shipped.rows.end()) << row;
    // The TPU row is of the whole run of 1,244 steps.
    const double seconds = at->unit == "h/run" ? at->value * 3600 / 1244 : at->value;
    EXPECT_NEAR(shipped_example(example).config().measured.seconds_per_step, seconds, 0.005);
  }
}

TEST(SizingExample, FitsAsDocumentedInItsNotes) {
  const ExperimentPlan p = planned("gemma3-1b-sizing-v5e");
  const auto fits = [&](const std::string& workload, std::int64_t batch) {
    for (const SizePoint& point : p.points)
      if (to_string(point.size.workload) == workload && point.size.batch == batch) return point.plan.fits();
    ADD_FAILURE() << "no point " << workload << " " << batch;
    return false;
  };
  EXPECT_TRUE(fits("rollout", 200));
  EXPECT_FALSE(fits("rollout", 256));
  EXPECT_TRUE(fits("forward", 10));
  EXPECT_FALSE(fits("forward", 12));
  EXPECT_TRUE(fits("chunked_forward", 136));
}

TEST(SizingExample, IsPredictedWithAndWithoutAdapters) {
  const PredictedSizes sizes = predicted_sizes(shipped_example("gemma3-1b-sizing-v5e"), context());
  EXPECT_EQ(sizes.capacity(), Bytes(std::int64_t{63} << 28));  // 15.75 GiB of its 16 are available to a program
  const ExperimentPlan planned_sizes = planned("gemma3-1b-sizing-v5e");
  std::vector<serve::MeasuredSize> points;
  ASSERT_TRUE(predict_sizes(sizes, [&](const serve::MeasuredSize& p) { points.push_back(p); }));
  ASSERT_EQ(points.size(), 2 * planned_sizes.points.size());
  for (const serve::MeasuredSize& p : points) {
    EXPECT_EQ(p.predicted_time.has_value(), p.fits());
    EXPECT_EQ(p.predicted[MemoryCategory::adapters].value > 0, p.adapters);
    if (!p.fits()) {
      // The largest batch is that of the plan: it fits, and one more row does not.
      const auto fits = [&](std::int64_t batch) {
        const plan::Request& request = p.adapters ? sizes.adapted : sizes.plain;
        return plan::predict(with_case(request, sizes.size, {p.workload, batch})).fits();
      };
      EXPECT_TRUE(fits(p.largest_batch)) << p.largest_batch;
      EXPECT_FALSE(fits(p.largest_batch + 1)) << p.largest_batch;
    }
    if (p.adapters) continue;
    for (const SizePoint& same : planned_sizes.points) {
      if (same.size.workload != p.workload || same.size.batch != p.batch) continue;
      EXPECT_EQ(p.predicted, same.plan.memory.at_peak);
      if (p.predicted_time) {
        EXPECT_EQ(p.predicted_time->seconds, same.plan.step.seconds.value);
      }
    }
  }
  // A request to stop ends it between two points.
  std::stop_source stop;
  int seen = 0;
  EXPECT_FALSE(predict_sizes(
      sizes,
      [&](const serve::MeasuredSize&) {
        if (++seen == 3) stop.request_stop();
      },
      stop.get_token()));
  EXPECT_EQ(seen, 3);
}

TEST(SizingExample, RejectsWhatCannotBePredicted) {
  const auto id_of = [](const std::string& key, const Json& value) -> std::string {
    experiment::Experiment e = shipped_example("gemma3-1b-sizing-v5e");
    e.set_value(key, value);
    try {
      predicted_sizes(e, context());
    } catch (const Error& error) {
      return error.problem().id;
    }
    return "";
  };
  EXPECT_EQ(id_of("mesh.tp", 2), "MESH-SIZE");
  EXPECT_EQ(id_of("size.forward_len", 1000000), "CONTEXT");
  EXPECT_EQ(id_of("size.batches", Json::array()), "MISSING");
  EXPECT_EQ(id_of("size.batches", Json::array({"x"})), "RANGE");
  EXPECT_EQ(id_of("size.prompt_len", 100), "");
}

TEST(TorchaxExample, Fits) {
  EXPECT_TRUE(planned("torchax-gemma2-2b-alpaca").plan.fits());
}

TEST(TorchaxExample, IsTheTutorialsRecipeAndSavesTheTutorialsAdapter) {
  const experiment::BoundExperiment config = shipped_example("torchax-gemma2-2b-alpaca").config();
  EXPECT_EQ(config.lora.rank, 16);
  EXPECT_EQ(config.lora.alpha, 32);
  EXPECT_EQ(config.lora.dropout, 0.1);
  EXPECT_THAT(config.lora.targets, testing::ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(config.train.epochs, 1);
  EXPECT_EQ(config.data.rows, 52002);
  const ExperimentPlan p = planned("torchax-gemma2-2b-alpaca");
  ASSERT_TRUE(p.trainable);
  EXPECT_EQ(p.trainable->params, 3194880);
  EXPECT_NEAR(100 * p.trainable->share(), 0.122, 0.0005);
  EXPECT_EQ(p.trainable->file.value, 12793376);
  EXPECT_EQ(planned_json(p)["trainable"]["params"], 3194880);
  EXPECT_THAT(planned_text(p), HasSubstr("trained: 3.19M parameters, 0.122 %, saved in 12.2 MiB"));
}

TEST(Trainable, TunixTrainsOneAForKAndVAndFullTrainingEverything) {
  const ExperimentPlan paper = planned("paper-train-v5p-8");
  const model::TensorInventory inventory(paper.request.model);
  const auto adapters = plan::adapter_shapes(paper.request, inventory);
  EXPECT_LT(paper.trainable->params, train::trainable_adapters(inventory, adapters).params);
  experiment::Experiment e = shipped_example("torchax-gemma2-2b-alpaca");
  e.set("train.method", "full");
  const ExperimentPlan full = plan_experiment(e, context());
  EXPECT_EQ(full.trainable->share(), 1);
  EXPECT_GT(full.trainable->file.value, 2 * full.trainable->params);
  EXPECT_FALSE(planned("gemma3-1b-sizing-v5e").trainable);
}

TEST(Budget, SolvesForTheStepsOfATraining) {
  experiment::Experiment e = shipped_example("paper-train-v5p-8");
  e.set("budget.hours", "1");
  const ExperimentPlan p = plan_experiment(e, context());
  ASSERT_TRUE(p.budget);
  EXPECT_EQ(p.budget->bound, "budget.hours");
  const double step = p.plan.step.seconds.value, compile = p.plan.compile.value;
  EXPECT_LE(static_cast<double>(p.budget->steps) * step + compile, 3600);
  EXPECT_GT(static_cast<double>(p.budget->steps + 1) * step + compile, 3600);
  EXPECT_NEAR(static_cast<double>(p.budget->steps), 343, 4);  // the paper took 9.67 s a step
  EXPECT_NEAR(p.budget->usd, 16.80, 0.06);
  EXPECT_FALSE(p.budget->holds_the_run());
  EXPECT_THAT(p.problems, Contains(Field(&Problem::id, "BUDGET")));
  EXPECT_EQ(planned_json(p)["budget"]["steps"], p.budget->steps);
  // The tightest limit counts.
  e.set("budget.usd", "8.40");
  const ExperimentPlan half = plan_experiment(e, context());
  EXPECT_EQ(half.budget->bound, "budget.usd");
  EXPECT_NEAR(half.budget->hours, 0.5, 0.01);
  e.set("budget.tokens", "1000");
  const ExperimentPlan none = plan_experiment(e, context());
  EXPECT_EQ(none.budget->bound, "budget.tokens");
  EXPECT_EQ(none.budget->steps, 0);
  EXPECT_FALSE(planned("paper-train-v5p-8").budget);
}

TEST(Budget, SolvesForTheRolloutsOfTheNotes) {
  experiment::Experiment e = shipped_example("gemma3-1b-sizing-v5e");
  e.set("budget.hours", "9");
  const ExperimentPlan p = plan_experiment(e, context());
  for (const SizePoint& point : p.points) {
    ASSERT_TRUE(point.rows_in_budget);
    EXPECT_EQ(*point.rows_in_budget % point.size.batch, 0) << "whole batches";
    const double batches = static_cast<double>(*point.rows_in_budget / point.size.batch);
    EXPECT_LE(batches * point.plan.step.seconds.value, 9 * 3600);
    EXPECT_GT((batches + 1) * point.plan.step.seconds.value, 9 * 3600);
  }
  const Json points = planned_json(p)["points"];
  EXPECT_EQ(points[0]["predicted"]["rows_in_budget"], *p.points[0].rows_in_budget);
  EXPECT_THAT(planned_text(p), HasSubstr("rows in the\n"));
}

experiment::Experiment costed(const std::string& name) {
  experiment::Experiment e = shipped_example(name);
  for (const auto& [key, value] : {std::pair{"cost.requests_per_day", "200000"},
                                   {"cost.months", "12"},
                                   {"cost.growth", "0.1"},
                                   {"cost.preemptions", "1"},
                                   {"sweep.slo_ttft_ms", "4000"},
                                   {"sweep.slo_tpot_ms", "60"}})
    e.set(key, value);
  return e;
}

TEST(Cost, TakesTheTrainingFromTheMeasurementTheRunOrThePlan) {
  experiment::Experiment e = costed("paper-train-v5p-8");
  const auto cost = cost_plan(e, context());
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->target, "v5p-8");
  EXPECT_EQ(cost->serve_target, "v6e-8");
  EXPECT_EQ(cost->training.hours, 3.34);
  ASSERT_TRUE(cost->of(CostClass::on_demand).cost);
  EXPECT_NEAR(cost->of(CostClass::on_demand).cost->training, 56.11, 0.005);
  EXPECT_EQ(cost_plan(e, context(), TrainedFor{2, "run-1"})->training.source, "run-1");
  e.erase("measured.hours");
  const auto predicted = cost_plan(e, context());
  EXPECT_EQ(predicted->training.source, "predicted");
  EXPECT_EQ(predicted->training.hours, plan_experiment(e, context()).plan.run.hours.value);
  EXPECT_FALSE(cost_plan(shipped_example("paper-train-v5p-8"), context())) << "no requests";
}

TEST(Cost, HasThreePriceClassesAndHoldsTheServiceLevel) {
  const experiment::Experiment e = costed("paper-train-v5p-8");
  const auto cost = cost_plan(e, context());
  ASSERT_TRUE(cost);
  EXPECT_GT(cost->capacity.requests_per_s, 0);
  EXPECT_LE(cost->capacity.ttft_s + cost->capacity.wait_s, 4.0 + 1e-9);
  EXPECT_LE(cost->capacity.tpot_s, 0.06);
  EXPECT_EQ(cost->of(CostClass::on_demand).serve.usd_per_chip_hour, 2.69);
  const CostOfClass& spot = cost->of(CostClass::spot);
  ASSERT_TRUE(spot.cost);
  EXPECT_EQ(spot.serve.price_class, "spot");
  EXPECT_GT(spot.cost->preempted, 0);
  EXPECT_EQ(cost->of(CostClass::on_demand).cost->preempted, 0) << "only spot machines are taken away";
  EXPECT_LT(spot.cost->total(), cost->of(CostClass::on_demand).cost->total());
  EXPECT_FALSE(cost->of(CostClass::committed).cost) << "the list has no committed price of these chips";
  EXPECT_FALSE(cost->swings.empty());
  const Json j = planned_json(plan_experiment(e, context()))["cost"];
  EXPECT_EQ(j["classes"][1]["total_usd"], spot.cost->total());
  EXPECT_TRUE(j["classes"][2]["total_usd"].is_null());
  EXPECT_EQ(j["tornado"][0]["input"], cost->swings[0].input);
}

TEST(Cost, BreaksEvenBetweenTwoTargetsWithoutTypedCosts) {
  const auto tpu = cost_plan(costed("paper-train-v5p-8"), context());
  const auto gpu = cost_plan(costed("paper-train-2xh100"), context());
  ASSERT_TRUE(tpu && gpu);
  const auto even = break_even(*tpu, *gpu);
  const std::string text = break_even_text(*tpu, *gpu);
  EXPECT_THAT(text, HasSubstr("on demand: "));
  const plan::CostInputs &a = tpu->classes[0].inputs, &b = gpu->classes[0].inputs;
  if (const auto requests = even[0].requests_per_day) {
    plan::CostInputs x = a, y = b;
    x.requests_per_day = y.requests_per_day = *requests * 1.5;
    const double ahead = plan::total_cost(x).total() - plan::total_cost(y).total();
    x.requests_per_day = y.requests_per_day = 1e9;
    EXPECT_GT(ahead * (plan::total_cost(x).total() - plan::total_cost(y).total()), 0);
  } else {
    EXPECT_THAT(text, HasSubstr("it is cheaper at any volume"));
  }
}

TEST(Cost, AModelThatDoesNotFitOnTheServerSaysSo) {
  experiment::Experiment e = costed("paper-train-v5p-8");
  e.set("serve.target", "v5e-1");
  const ExperimentPlan p = plan_experiment(e, context());
  ASSERT_TRUE(p.cost);
  EXPECT_FALSE(p.cost->fits);
  EXPECT_THAT(planned_text(p), HasSubstr("does not fit on one server"));
}

TEST(PlannedJson, HasTheDocumentedKeys) {
  const Json j = planned_json(planned("paper-train-v5p-8"));
  EXPECT_EQ(j["target"], "v5p-8");
  EXPECT_TRUE(j["fits"].get<bool>());
  ASSERT_EQ(j["devices"].size(), 4u);
  EXPECT_EQ(j["devices"][3]["id"], 3);
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : j["devices"][0]["memory"].items())
    if (name != "total") sum += bytes.get<std::int64_t>();
  EXPECT_EQ(j["devices"][0]["memory"]["total"], sum);
  for (const char* key : {"seconds", "compute_s", "memory_s", "communication_s"})
    EXPECT_GT(j["step"][key].get<double>(), 0) << key;
  EXPECT_EQ(j["run"]["steps"], 1244);
  for (const char* key : {"hours", "usd", "tokens_per_second", "padded_tokens_per_second", "usd_per_million_tokens"})
    EXPECT_GT(j["run"][key].get<double>(), 0) << key;
  EXPECT_TRUE(j["diagnostics"].is_array());
  EXPECT_FALSE(j["sources"].empty());
}

TEST(PlannedText, ShowsMemoryTimeAndCost) {
  const std::string text = planned_text(planned("paper-train-v5p-8"));
  for (const char* part : {"fits", "base weights", "sliding layers", "MFU", "PAD-1", "with 24 h of serving"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Retarget, KeepsAMeshOfTheSameSizeAndElseUsesTheLegalOneNearestToTheDefault) {
  experiment::Experiment e = shipped_example("paper-train-v5p-8");
  retarget(e, "v6e-8", context());
  EXPECT_EQ(to_text(plan_request(e, context()).mesh), "fsdp 2, tp 4") << "the nearest that 4 KV heads allow";
  e = shipped_example("paper-train-v5p-8");
  retarget(e, "v6e-4", context());
  EXPECT_EQ(plan_request(e, context()).mesh.size("tp"), 4);
  retarget(e, "2xh100", context());
  const plan::Request gpu = plan_request(e, context());
  EXPECT_EQ(gpu.stack, model::Stack::trl_fsdp);
  EXPECT_EQ(gpu.mesh.size("fsdp"), 2);
}

TEST(FollowTarget, SetsTheNearestLegalMeshAndDropsWhatBelongedToTheOldChips) {
  const experiment::Experiment paper = shipped_example("paper-train-v5p-8");
  experiment::Experiment e = paper;
  e.set_value("target.id", "v6e-8");
  e.set_value("measured.hours", 3.0);
  follow_target(paper, e, context());
  EXPECT_EQ(to_text(plan_request(e, context()).mesh), "fsdp 2, tp 4") << "the nearest that 4 KV heads allow";
  EXPECT_EQ(e.value("measured.hours"), experiment::Experiment().value("measured.hours"));
  experiment::Experiment same = paper;
  follow_target(paper, same, context());
  EXPECT_EQ(same, paper);
  experiment::Experiment unknown = paper;
  unknown.set_value("target.id", "v5p-9");
  const experiment::Experiment typed = unknown;
  follow_target(paper, unknown, context());
  EXPECT_EQ(unknown, typed);
}

TEST(Adapters, MatchTheModuleExpression) {
  const auto adapters = [](const std::string& expression, const std::string& target = "v5p-8") {
    experiment::Experiment e = shipped_example("paper-train-v5p-8");
    if (target != "v5p-8") retarget(e, target, context());
    e.set("lora.module_path", expression);
    return static_cast<double>(
        plan_experiment(e, context()).plan.memory.category_peaks[MemoryCategory::adapters].value);
  };
  const double all = adapters(""), queries = adapters(".*q_einsum"), none = adapters("nothing.*");
  EXPECT_LT(queries, all * 0.4);
  EXPECT_GT(queries, 0);
  EXPECT_EQ(none, 0);
  EXPECT_DOUBLE_EQ(adapters("(unclosed"), all);  // the checker says that; the targets count
  // One layer of sixty; Qwix's names mean nothing to PEFT.
  EXPECT_NEAR(adapters("layers/0/attn/q_einsum") * 50, queries, queries * 0.25);
  EXPECT_GT(adapters(R"(.*language_model\..*\.q_proj)", "2xh100"), 0);
  EXPECT_EQ(adapters(".*q_einsum", "2xh100"), 0);
}

TEST(Search, APlanOnAnotherChipDropsTheOldPrice) {
  experiment::Experiment e = shipped_example("paper-train-v5p-8");
  e.set("price.usd_per_chip_hour", "3.5");
  const ExperimentSearch found = search_experiment(e, {"v6e-8", "v5p-16"}, context(), {});
  const auto edits = [&](const std::string& target) {
    plan::PlanChoice from = plan::choice_of(found.request), to = from;
    to.target = target;
    std::map<std::string, Json> out;
    for (const lint::Edit& edit : edits_to(found, from, to)) out[edit.key] = edit.value;
    return out;
  };
  EXPECT_TRUE(edits("v6e-8").at("price.usd_per_chip_hour").is_null());
  EXPECT_EQ(edits("v6e-8").at("target.id"), "v6e-8");
  EXPECT_TRUE(edits("v6e-8").contains("measured.hours"));
  EXPECT_FALSE(edits("v6e-8").contains("price.region"));              // the document has none
  EXPECT_FALSE(edits("v5p-16").contains("price.usd_per_chip_hour"));  // the same chip
  EXPECT_FALSE(edits("v5p-8").contains("price.usd_per_chip_hour"));
}

TEST(PlanErrors, NameTheKeyAtFault) {
  const auto with = [](const char* key, const char* value) {
    experiment::Experiment e = shipped_example("paper-train-v5p-8");
    e.set(key, value);
    return error_of_plan(e);
  };
  EXPECT_EQ(with("target.id", "v5q-8").id, "TARGET");
  EXPECT_EQ(with("model.id", "gemma9-1b").place, "model.id");
  EXPECT_EQ(with("mesh.tp", "3").id, "MESH-SIZE");
  EXPECT_EQ(with("price.region", "moon").place, "price.region");
  EXPECT_EQ(with("sharding.overrides", "q_einsum").place, "sharding.overrides");
  EXPECT_EQ(with("sharding.overrides", "q_einsum = (tp").id, "SPEC-SYNTAX");
  EXPECT_EQ(with("serve.target", "v6e-9").id, "TARGET-SLICE");
  experiment::Experiment e = shipped_example("paper-train-v5p-8");
  e.set_value("model.id", "");
  EXPECT_EQ(error_of_plan(e).id, "MISSING");
}

// One planner and one form of the answer, whatever the target.
TEST(PlanOnThisMachine, AnswersAsForEveryTarget) {
  const ExperimentPlan here = planned("tiny-lora");
  ASSERT_TRUE(here.request.engine);
  EXPECT_FALSE(here.plan.memory.is_bound);
  EXPECT_TRUE(plan_experiment(shipped_example("tiny-lora"), context(), ReadData::no).plan.memory.is_bound);
  const Json json = planned_json(here), elsewhere = planned_json(planned("paper-train-v5p-8"));
  for (const char* key : {"step", "run", "memory"})
    for (const auto& [name, value] : elsewhere[key].items())
      EXPECT_TRUE(json[key].contains(name)) << key << "." << name;
  for (const char* number : {"hours", "steps", "tokens_per_second"}) EXPECT_TRUE(json["run"][number].is_number());
  EXPECT_TRUE(json["run"]["usd"].is_null());
  EXPECT_TRUE(json["run"]["mfu"].empty()) << "the engine multiplies in several types, each with its peak";
  EXPECT_LT(json["step"]["low_s"], json["step"]["high_s"]);
  EXPECT_EQ(json["devices"][0]["memory"]["total"], here.plan.memory.at_peak.total().value);
  experiment::Experiment priced = shipped_example("tiny-lora");
  priced.set("price.usd_per_chip_hour", "2");
  EXPECT_GT(planned_json(plan_experiment(priced, context()))["run"]["usd"], 0);
}

TEST(PlanOnThisMachine, StepsOfEpochsOfUnknownDataAreNotKnown) {
  experiment::Experiment e;
  experiment::apply_sets(e, {"model.id=gemma3-1b", "train.epochs=2"});
  const ExperimentPlan p = plan_experiment(e, context());
  const Json run = planned_json(p)["run"];
  EXPECT_TRUE(run["steps"].is_null() && run["hours"].is_null());
  EXPECT_GT(run["tokens_per_second"], 0);
  EXPECT_NE(planned_text(p).find("the number of steps is not known"), std::string::npos);
}

}  // namespace
}  // namespace mw::plan
