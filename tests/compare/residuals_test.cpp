// SPDX-License-Identifier: GPL-3.0-or-later
// Residuals of training runs and sweeps: each term is the prediction minus what the run recorded.
#include "core/compare/residuals.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/plan/document/plan_request.h"
#include "core/serve/load/sweep.h"
#include "tests/shipped.h"

namespace mw::compare {
namespace {

using experiment::Experiment;
using test::context;
using testing::HasSubstr;

const Residual* row(const Residuals& r, const std::string& key) {
  for (const Residual& one : r.rows)
    if (one.key == key) return &one;
  return nullptr;
}

Experiment short_rows() {
  Experiment e;
  e.set("kind", "train");
  e.set("model.id", "gemma3-1b");
  e.set("data.max_len", "256");
  e.set("train.batch", "2");
  return e;
}

Ledger ledger(std::int64_t weights, std::int64_t activations) {
  Ledger l;
  l[MemoryCategory::weights] = Bytes(weights);
  l[MemoryCategory::activations] = Bytes(activations);
  return l;
}

// Three steps of 200 tokens in 2 s each on two devices, the second one fuller; 0.5 s of 0.7 s are collectives.
ComparedRun trained(const Json& summary) {
  views::RunView view;
  view.feed(
      {0, event::Started{
              {{"steps", 3}, {"devices", 2}, {"predicted", {{"weights", 90}, {"activations", 50}, {"total", 140}}}}}});
  for (long step = 1; step <= 3; ++step) {
    view.feed({2.0 * step, event::Metric{"train/tokens_per_second", step, step == 1 ? 10.0 : 100.0}});
    view.feed({2.0 * step, event::Memory{0, step, "step", ledger(100, 30), Bytes(130)}});
    view.feed({2.0 * step, event::Memory{1, step, "step", ledger(100, 40 + step), Bytes(140 + step)}});
    event::StepTraffic traffic;
    traffic.step = step;
    event::StepTraffic::Entry& entry = traffic.entries.emplace_back();
    entry.kind = "all-gather";
    entry.axis = "fsdp";
    entry.phase = "forward";
    entry.seconds = 0.7;
    entry.waited = 0.2;
    view.feed({2.0 * step, traffic});
  }
  event::Finished finished;
  finished.state = RunState::done;
  finished.steps = 3;
  finished.tokens = 600;
  finished.summary = summary;
  view.feed({6, finished});
  ComparedRun out{.id = "run-1", .name = "run-1", .experiment = short_rows()};
  out.training = std::move(view);
  return out;
}

const Json kSplit{{"step_seconds", {{"steps", 2}, {"seconds", 4.0}, {"compute", 2.0}, {"memory", 0.5}, {"host", 0.1}}}};

TEST(Residuals, EveryTermOfAStepIsPredictedMinusMeasured) {
  const Residuals r = residuals(trained(kSplit), context());
  const Residual *step = row(r, "step.seconds"), *compute = row(r, "step.compute"), *host = row(r, "step.host"),
                 *collectives = row(r, "step.collectives"), *queue = row(r, "step.queue"),
                 *memory = row(r, "step.memory");
  ASSERT_TRUE(step && compute && host && collectives && queue && memory);
  EXPECT_DOUBLE_EQ(*step->measured, 2);  // the first step does not count
  EXPECT_DOUBLE_EQ(*compute->measured, 1);
  EXPECT_DOUBLE_EQ(*memory->measured, 0.25);
  EXPECT_DOUBLE_EQ(*host->measured, 0.05);
  EXPECT_NEAR(*collectives->measured, 0.5, 1e-12);
  EXPECT_NEAR(*queue->measured, 0.2, 1e-12);
  EXPECT_FALSE(queue->difference());  // the plan has no such term
  ASSERT_TRUE(compute->predicted && compute->difference());
  EXPECT_DOUBLE_EQ(*compute->difference(), compute->predicted->value - 1);
  EXPECT_DOUBLE_EQ(*compute->relative(), compute->predicted->value - 1);
}

TEST(Residuals, MemoryIsThatOfTheFullestDeviceAtItsPeakByCategory) {
  const Residuals r = residuals(trained(kSplit), context());
  const Residual *total = row(r, "memory.total"), *activations = row(r, "memory.activations");
  ASSERT_TRUE(total && activations);
  EXPECT_EQ(*total->measured, 143);
  EXPECT_EQ(*activations->measured, 43);
  EXPECT_EQ(activations->predicted->value, 50);
  EXPECT_EQ(*activations->difference(), 7);
  EXPECT_EQ(*row(r, "memory.weights")->difference(), -10);
  EXPECT_TRUE(activations->is_outside());
}

TEST(Residuals, RowsAreAsLongAsThoseOfTheRun) {
  ComparedRun longer = trained(kSplit);
  longer.experiment.set("data.max_len", "2048");
  const double a = row(residuals(trained(kSplit), context()), "step.compute")->predicted->value;
  EXPECT_DOUBLE_EQ(row(residuals(longer, context()), "step.compute")->predicted->value, a);
}

TEST(Residuals, ARunWithoutTheSplitComparesOnlyTheWholeStep) {
  const Residuals r = residuals(trained(Json::object()), context());
  EXPECT_FALSE(row(r, "step.compute")->measured);
  EXPECT_TRUE(row(r, "step.seconds")->difference());
  EXPECT_THAT(r.notes, testing::Contains(HasSubstr("only the whole step")));
}

TEST(Residuals, ADamagedSummaryIsNotMeasured) {
  for (const Json& split : {Json("x"), Json{{"steps", 0}, {"compute", 1}}, Json{{"steps", "2"}, {"compute", "1"}}}) {
    const Residuals r = residuals(trained({{"step_seconds", split}}), context());
    EXPECT_FALSE(row(r, "step.compute")->measured) << split.dump();
  }
}

TEST(Residuals, StagesOfASimulatedSweepHaveNone) {
  Experiment e;
  for (const auto& [key, value] : std::vector<std::pair<const char*, const char*>>{{"kind", "serve"},
                                                                                   {"model.id", "gemma3-1b"},
                                                                                   {"target.id", "v6e-1"},
                                                                                   {"mesh.tp", "1"},
                                                                                   {"train.dtype", "bf16"},
                                                                                   {"sweep.request_rates", "[4, 32]"},
                                                                                   {"sweep.input_lens", "[1024]"},
                                                                                   {"sweep.num_prompts", "40"},
                                                                                   {"sweep.output_len", "64"}})
    e.set(key, value);
  formats::BenchSet set = serve::sweep_facts(e.config(), context().catalogue);
  set.provenance = formats::ResultProvenance::measured;
  for (const double rate : {4.0, 32.0}) set.points.push_back(simulated_point(e, {rate, 1024}, context()));
  set.points[1].ttft.median += 5;
  ComparedRun run = compared(std::move(set));
  run.experiment = e;
  const Residuals r = residuals(run, context());
  const Residual* queue = row(r, "1024/64@4.queue_ms");
  ASSERT_TRUE(queue && queue->difference()) << to_text(r);
  EXPECT_NEAR(*queue->difference(), 0, 1e-9);
  EXPECT_NEAR(*row(r, "1024/64@4.prefill_ms")->difference(), 0, 1e-9);
  EXPECT_NEAR(*row(r, "1024/64@32.ttft_ms")->difference(), -5, 1e-9);
}

// A step is the median one, and its parts are shares of it: a pause of the machine does not count.
TEST(Residuals, AStepIsTheMedianOne) {
  ComparedRun run = trained({{"step_seconds", {{"steps", 2}, {"seconds", 8.0}, {"compute", 6.0}}}});
  const Residuals r = residuals(run, context());
  EXPECT_DOUBLE_EQ(*row(r, "step.seconds")->measured, 2);
  EXPECT_DOUBLE_EQ(*row(r, "step.compute")->measured, 1.5);
}

// The plan of a run is not that which the run itself has corrected.
TEST(Residuals, ThePlanIsThatBeforeTheRun) {
  plan::PlanContext corrected = context();
  const Experiment e = trained(kSplit).experiment;
  const plan::Request request = plan::plan_request(e, corrected);
  plan::MeasuredRun own = *plan::measured_run(e.config(), corrected, request);
  own.factor = 10, own.run = "run-1";
  const double before = row(residuals(trained(kSplit), corrected), "step.seconds")->predicted->value;
  corrected.machine.runs = {own};
  EXPECT_GT(plan::predict(plan::plan_request(e, corrected)).step.seconds.value,
            5 * plan::predict(request).step.seconds.value);
  EXPECT_DOUBLE_EQ(row(residuals(trained(kSplit), corrected), "step.seconds")->predicted->value, before);
  corrected.machine.runs.front().run = "run-0";
  EXPECT_GT(row(residuals(trained(kSplit), corrected), "step.seconds")->predicted->value, 5 * before);
}

TEST(Residuals, RefusesWhatWasNotMeasured) {
  ComparedRun predicted = trained(kSplit);
  predicted.provenance = formats::ResultProvenance::predicted;
  ComparedRun partial = trained(kSplit);
  partial.has_all_settings = false;
  ComparedRun empty{.name = "empty", .experiment = short_rows()};
  empty.training.emplace();
  ComparedRun failed = trained(kSplit);
  event::Finished end;
  end.state = RunState::failed;
  end.steps = 3;
  failed.training->feed({7, end});
  for (const ComparedRun* run : {&predicted, &partial, &empty, &failed}) {
    try {
      residuals(*run, context());
      ADD_FAILURE() << run->name;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().id, "RESIDUALS");
      EXPECT_FALSE(e.problem().fix.empty());
    }
  }
}

TEST(Residuals, TextAndJsonShowTheSameTerms) {
  const Residuals r = residuals(trained(kSplit), context());
  const Json j = to_json(r);
  ASSERT_EQ(j["rows"].size(), r.rows.size());
  const std::string text = to_text(r);
  for (const Residual& one : r.rows) EXPECT_THAT(text, HasSubstr(one.label));
  EXPECT_FALSE(j["can_calibrate"].get<bool>());  // a key of version 1.0
  // Every column is separated, however long its texts are.
  Residuals wide;
  wide.rows.push_back({.label = "1024/64@4 output_throughput",
                       .unit = "tokens/s",
                       .predicted = plan::Estimate{.value = 123456, .low = 1, .high = 1e6},
                       .measured = 123457.0});
  EXPECT_THAT(to_text(wide), HasSubstr("output_throughput  123500 tokens/s  123500 tokens/s  "));
}

}  // namespace
}  // namespace mw::compare
