// SPDX-License-Identifier: GPL-3.0-or-later
// train.epochs means the same number of steps to the planner, the engine, every recipe and the JSON of each.
#include "core/plan/document/plan_request.h"

#include <gmock/gmock.h>

#include <optional>

#include "core/base/files.h"
#include "core/data/dataset/lengths.h"
#include "core/experiment/bound_experiment.h"
#include "core/jobs/job.h"
#include "core/jobs/recipe_export.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/views/data_view.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"
#include "tests/train/random_model.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr int kRows = 60;

void write_epoch_rows(const fs::path& file, int rows) {
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const std::string more = i % 9 == 0 ? " and then again and again and again and again and again and again" : "";
    text += Json{{"prompt", "What is " + std::to_string(i) + more + "?"}, {"completion", "it"}}.dump() + "\n";
  }
  write_file_atomically(file, text);
}

// Every row three times.
void repeat_rows(const fs::path& file) {
  const std::string rows = read_file(file);
  write_file_atomically(file, rows + rows + rows);
}

// Some of its rows are too long, some held out.
experiment::Experiment epochs_experiment(const fs::path& folder, const std::vector<std::string>& sets) {
  train::test::random_model("gemma3", folder);
  write_epoch_rows(folder / "rows.jsonl", kRows);
  Json e = parse_json(R"({"schema": 1, "lora": {"rank": 2}, "mesh": {"fsdp": 2, "tp": 1},
    "data": {"max_len": 30, "eval_fraction": 0.1},
    "train": {"epochs": 1.5, "batch": 4, "checkpoint_every": 2, "eval_every": 0, "sample_every": 0}})",
                      "epochs");
  e["model"] = {{"path", folder.string()}, {"tokenizer", MW_RESOURCES "/base-model"}, {"init", "random"}};
  e["data"]["path"] = (folder / "rows.jsonl").string();
  experiment::Experiment experiment = experiment::Experiment::from_json(e, folder);
  experiment::apply_sets(experiment, sets);
  return experiment;
}

struct EngineSteps {
  long started = 0, done = 0;
};
EngineSteps engine_steps(const JobRequest& request, std::stop_token stop = {}, const EventSink& more = {}) {
  EngineSteps steps;
  const store::RunOutcome outcome = run_blocking(
      request,
      [&](const Event& e) {
        if (const auto* s = std::get_if<event::Started>(&e.body)) steps.started = s->info.at("steps").get<long>();
        if (more) more(e);
      },
      std::move(stop));
  EXPECT_EQ(outcome.finished.error, "");
  steps.done = outcome.finished.steps;
  return steps;
}

long long planned_steps(experiment::Experiment e, const std::string& target) {
  plan::retarget(e, target, test::context());
  return plan::planned_json(plan::plan_experiment(e, test::context()))["run"]["steps"].get<long long>();
}

// Returns the number of steps.
long long expect_same_steps(const experiment::Experiment& e, const fs::path& runs, const EventSink& sink = {}) {
  const auto steps = plan::training_steps(e.config());
  EXPECT_TRUE(steps);
  if (!steps) return 0;
  const EngineSteps engine = engine_steps({e, runs, std::nullopt}, {}, sink);
  EXPECT_EQ(engine.started, *steps);
  EXPECT_EQ(engine.done, *steps);
  EXPECT_EQ(plan::plan_experiment(e, test::context()).plan.run.steps, *steps);
  for (const char* target : {"v5p-8", "2xh100"}) EXPECT_EQ(planned_steps(e, target), *steps) << target;
  for (const model::Stack kind : recipes::kRecipes) {
    if (model::serves(kind)) continue;
    const recipes::RecipeInput s = recipe_input(kind, e, test::context(), fs::path(MW_RESOURCES) / "recipes");
    EXPECT_EQ(s.values["train"]["steps"], *steps) << model::to_string(kind);
    EXPECT_EQ(s.rows ? s.rows->rows : 0, *steps * 4 * e.value("train.accumulation").get<long long>());
  }
  return *steps;
}

TEST(Epochs, PlannerEngineRecipesAndJsonAgreeOnTheSteps) {
  for (const std::vector<std::string>& sets : {std::vector<std::string>{},
                                               {"data.packing=true", "data.max_len=64"},
                                               {"train.accumulation=3"},
                                               {"data.overlong=truncate"},
                                               {"train.epochs=0.01"},
                                               {"train.steps=500", "train.epochs=2"}}) {
    const test::Scratch folder;
    const experiment::Experiment e = epochs_experiment(folder.path(), sets);
    expect_same_steps(e, folder.path() / "runs");
  }
}

TEST(Epochs, DroppedDuplicatesAreNotCountedAnywhere) {
  const test::Scratch folder;
  experiment::Experiment e = epochs_experiment(folder.path(), {"data.eval_fraction=0.2"});
  repeat_rows(folder.path() / "rows.jsonl");
  const long long all = expect_same_steps(e, folder.path() / "all");
  e.set_value("data.dedup", true);
  Json data;
  std::string log;
  const long long unique = expect_same_steps(e, folder.path() / "unique", [&](const Event& event) {
    if (const auto* s = std::get_if<event::Started>(&event.body)) data = s->info.at("data");
    if (const auto* l = std::get_if<event::Log>(&event.body)) log += l->text + "\n";
  });
  EXPECT_LT(unique, all / 2);
  const long repeated = data.at("dropped_repeated").get<long>(), held_out = data.at("dropped_held_out").get<long>();
  EXPECT_GT(repeated, 0);
  EXPECT_GT(held_out, 0);
  EXPECT_EQ(data.at("kept").get<long>() + repeated + held_out + data.at("dropped_long").get<long>(), 3 * kRows);
  EXPECT_THAT(log, HasSubstr(std::to_string(repeated) + " repeated and dropped, " + std::to_string(held_out) +
                             " equal to held-out rows and dropped"));
  // The lengths leave them out, too, and so give the same number of rows without the file.
  const train::DataIndexRequest request = train::data_index_request(e);
  const train::DataIndex index = train::index_data(request, data::load_tokenizer(request.tokenizer).get());
  EXPECT_EQ(data::length_stats(index.lengths).rows, 3 * kRows - repeated - held_out);
  EXPECT_EQ(index.report.dropped_repeated, repeated);
}

TEST(Epochs, AHistogramGivesTheSameSteps) {
  for (const bool packing : {false, true}) {
    const test::Scratch folder;
    experiment::Experiment e = epochs_experiment(folder.path(), {"data.max_len=64"});
    e.set_value("data.packing", packing);
    const train::DataIndexRequest question = train::data_index_request(e);
    const auto tokenizer = data::load_tokenizer(question.tokenizer);
    const fs::path lengths = folder.path() / "lengths.json";
    data::write_lengths(lengths, train::index_data(question, tokenizer.get()).lengths, "test");
    const auto counted = plan::training_steps(e.config());
    e.erase("data.path");
    EXPECT_FALSE(plan::epoch_rows(e.config()));
    e.set_value("data.lengths", lengths.string());
    if (packing)  // the rows are in another order, so that a few may be packed otherwise
      EXPECT_NEAR(static_cast<double>(*plan::training_steps(e.config())), static_cast<double>(*counted), 1);
    else
      EXPECT_EQ(plan::training_steps(e.config()), counted);
    EXPECT_EQ(planned_steps(e, "v5p-8"), *plan::training_steps(e.config()));
  }
}

TEST(Epochs, WithoutRowsOneStepIsPlannedWithAWarning) {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/torchax-gemma2-2b-alpaca.json");
  EXPECT_FALSE(e.has("train.steps"));
  EXPECT_EQ(planned_steps(e, "v6e-1"), 6500);
  const recipes::RecipeInput s =
      recipe_input(model::Stack::torchax, e, test::context(), fs::path(MW_RESOURCES) / "recipes");
  EXPECT_EQ(s.values["train"]["steps"], 6500);
  e.erase("data.rows");
  const plan::ExperimentPlan planned = plan::plan_experiment(e, test::context());
  EXPECT_EQ(planned.plan.run.steps, 1);
  EXPECT_THAT(planned.problems, Contains(Field(&Problem::id, "EPOCHS")));
}

TEST(Epochs, AResumedRunKeepsItsStepsWhenTheDataGrows) {
  const test::Scratch folder;
  const experiment::Experiment e = epochs_experiment(folder.path(), {});
  const long expected = static_cast<long>(*plan::training_steps(e.config()));
  ASSERT_GT(expected, 6);
  std::stop_source stop;
  const auto stop_at_4 = [&](const Event& event) {
    const auto* m = std::get_if<event::Metric>(&event.body);
    if (m && m->name == "train/loss" && m->step == 4) stop.request_stop();
  };
  const EngineSteps first = engine_steps({e, folder.path() / "runs", std::nullopt}, stop.get_token(), stop_at_4);
  EXPECT_EQ(first.done, 4);
  EXPECT_EQ(first.started, expected);
  write_epoch_rows(folder.path() / "rows.jsonl", 3 * kRows);
  const EngineSteps resumed = engine_steps({e, folder.path() / "runs", store::RunId("run-1")});
  EXPECT_EQ(resumed.started, expected);
  EXPECT_EQ(resumed.done, expected);
}

TEST(Epochs, SettingStepsClearsEpochs) {
  const experiment::Experiment example =
      experiment::Experiment::load(MW_RESOURCES "/examples/torchax-gemma2-2b-alpaca.json");
  experiment::Experiment e = example;
  EXPECT_THAT(experiment::apply_sets(e, {"train.steps=7"}),
              ElementsAre(HasSubstr("train.epochs=1 of the experiment is cleared")));
  EXPECT_FALSE(e.has("train.epochs"));
  EXPECT_EQ(plan::training_steps(e.config()), 7);
  e = example;
  EXPECT_THAT(experiment::apply_sets(e, {"train.steps=7", "train.epochs=2"}),
              ElementsAre(HasSubstr("train.steps is ignored")));
  EXPECT_EQ(plan::training_steps(e.config()), 13000);
  EXPECT_THAT(e.validate(), Contains(Field(&Problem::id, "EPOCHS")));
  e = example;
  EXPECT_TRUE(experiment::apply_sets(e, {"train.epochs=2"}).empty());
  EXPECT_TRUE(e.validate().empty());
}

}  // namespace
}  // namespace mw::jobs
