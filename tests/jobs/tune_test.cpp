// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/jobs/tune.h"

#include <gmock/gmock.h>

#include <set>

#include "core/jobs/job.h"
#include "tests/jobs/quick_experiment.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string error_of(const TuneOptions& options) {
  try {
    tune_trials(options);
    return "none";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(TuneTrials, AGridHasEveryCombinationInOrder) {
  const TuneOptions options{.varied = {"lora.rank=4,8", "lora.targets=[\"q_proj\",\"v_proj\"],[\"o_proj\"]"}};
  EXPECT_THAT(tune_trials(options), ElementsAre(ElementsAre("lora.rank=4", "lora.targets=[\"q_proj\",\"v_proj\"]"),
                                                ElementsAre("lora.rank=4", "lora.targets=[\"o_proj\"]"),
                                                ElementsAre("lora.rank=8", "lora.targets=[\"q_proj\",\"v_proj\"]"),
                                                ElementsAre("lora.rank=8", "lora.targets=[\"o_proj\"]")));
}

TEST(TuneTrials, RandomOnesAreAFunctionOfTheSeedWithoutRepetitions) {
  TuneOptions options{
      .varied = {"train.learning_rate=log:1e-5..1e-2", "lora.rank=4..16"}, .method = TuneMethod::random, .trials = 40};
  const auto trials = tune_trials(options);
  EXPECT_EQ(trials, tune_trials(options));
  EXPECT_EQ(std::set(trials.begin(), trials.end()).size(), 40u);
  int below = 0;
  for (const auto& sets : trials) {
    const double rate = std::stod(sets[0].substr(sets[0].find('=') + 1));
    EXPECT_TRUE(rate >= 1e-5 && rate <= 1e-2) << sets[0];
    below += rate < 3.2e-4;  // the middle by logarithm
    const std::string rank = sets[1].substr(sets[1].find('=') + 1);
    EXPECT_EQ(rank.find('.'), std::string::npos) << rank;
    EXPECT_TRUE(std::stoi(rank) >= 4 && std::stoi(rank) <= 16) << rank;
  }
  EXPECT_GT(below, 10);
  EXPECT_LT(below, 30);
  options.seed = 2;
  EXPECT_NE(trials, tune_trials(options));
  options.varied = {"lora.rank=4,8,16"};
  EXPECT_THAT(tune_trials(options), SizeIs(3)) << "there are no more combinations";
}

TEST(TuneTrials, ErrorsNameTheKeyAndWhatIsExpected) {
  EXPECT_THAT(error_of({}), HasSubstr("nothing is varied"));
  EXPECT_THAT(error_of({.varied = {"lora.rank"}}), HasSubstr("has no values"));
  EXPECT_THAT(error_of({.varied = {"lora.ranks=4"}}), HasSubstr("lora.rank"));
  EXPECT_THAT(error_of({.varied = {"lora.rank=4..16"}}), HasSubstr("a grid needs values"));
  EXPECT_THAT(error_of({.varied = {"lora.rank=16..4"}, .method = TuneMethod::random}), HasSubstr("range is empty"));
  EXPECT_THAT(error_of({.varied = {"train.seed=log:0..9"}, .method = TuneMethod::random}), HasSubstr("above 0"));
  EXPECT_THAT(error_of({.varied = {"lora.rank=4,8"}, .method = TuneMethod::random, .trials = 0}),
              HasSubstr("--trials"));
  std::string many = "train.seed=1";
  for (int i = 2; i <= 1001; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(error_of({.varied = {many}}), HasSubstr("too many trials"));
}

TEST(TuneRungs, AreSharesOfTheStepsAtEvaluations) {
  TuneOptions options{.method = TuneMethod::halving, .trials = 8};
  EXPECT_THAT(tune_rungs(options, 80, 5), ElementsAre(10, 20, 40, 80));
  EXPECT_THAT(tune_rungs(options, 100, 30), ElementsAre(30, 60, 100));
  EXPECT_THAT(tune_rungs(options, 10, 50), ElementsAre(10));
  options.reduction = 3;
  EXPECT_THAT(tune_rungs(options, 90, 1), ElementsAre(30, 90));
}

TuneRequest request_in(const test::Scratch& folder, TuneMethod method) {
  return {.runs_folder = folder.path() / "runs",
          .experiment = test::quick_experiment(folder.path(), {"train.steps=8", "train.eval_every=2",
                                                               "train.sample_every=0", "train.checkpoint_every=0"}),
          .options = {.varied = {"train.learning_rate=0.0001,0.01,0.03,0"}, .method = method, .trials = 4}};
}

std::vector<std::pair<std::string, std::optional<double>>> values_of(const TuneReport& report) {
  std::vector<std::pair<std::string, std::optional<double>>> out;
  for (const TuneTrial& t : report.trials) out.emplace_back(t.sets[0] + " " + std::to_string(t.steps), t.value);
  return out;
}

// The events of a run that do not depend on its speed.
std::vector<std::pair<long, double>> recorded_losses(const std::filesystem::path& runs, const store::RunId& run) {
  auto all = store::Store(runs).metric(run, "train/loss");
  for (const auto& point : store::Store(runs).metric(run, "eval/loss")) all.push_back(point);
  return all;
}

TEST(Tune, HalvingGoesOnWithTheBetterHalf) {
  const test::Scratch folder;
  TuneRequest request = request_in(folder, TuneMethod::halving);
  std::string id;
  request.on_id = [&](const std::string& given) { id = given; };
  const TuneReport report = tune(request, {});
  ASSERT_TRUE(report.best);
  EXPECT_EQ(id, "tune-1");
  std::multiset<long> steps;
  for (const TuneTrial& t : report.trials) steps.insert(t.steps);
  EXPECT_THAT(steps, ElementsAre(2, 2, 4, 8));
  const TuneTrial& best = report.trials[*report.best];
  EXPECT_EQ(best.steps, 8);
  EXPECT_EQ(best.state, RunState::done);
  const store::Store store(request.runs_folder);
  ASSERT_THAT(store.list(), SizeIs(4));
  for (const store::RunRow& row : store.list()) EXPECT_EQ(row.tags, "tune-1");
  // A trial that was stopped and went on twice is the run that its settings give at once.
  experiment::Experiment plain = request.experiment;
  experiment::apply_sets(plain, best.sets);
  const auto outcome = run_blocking({.experiment = plain, .runs_folder = folder.path() / "plain", .resume = {}},
                                    [](const Event&) {}, {});
  ASSERT_EQ(outcome.finished.state, RunState::done);
  EXPECT_EQ(recorded_losses(request.runs_folder, best.run), recorded_losses(folder.path() / "plain", "run-1"));
}

TEST(Tune, GoesOnAfterAStopAnywhereAndEndsTheSame) {
  const test::Scratch whole;
  const TuneReport expected = tune(request_in(whole, TuneMethod::halving), {});
  for (const long stop_after : {5L, 13L}) {
    const test::Scratch folder;
    TuneRequest request = request_in(folder, TuneMethod::halving);
    std::stop_source stop;
    long steps = 0;
    request.on_progress = [&](const TuneProgress& p) {
      EXPECT_LE(p.step, p.until);
      if (++steps == stop_after) stop.request_stop();
    };
    EXPECT_EQ(tune(request, stop.get_token()).state, RunState::cancelled);
    EXPECT_THAT(unfinished_tunings(request.runs_folder), ElementsAre("tune-1"));
    request.resume = "tune-1";
    request.on_progress = {};
    const TuneReport report = tune(request, {});
    EXPECT_EQ(report.state, RunState::done);
    EXPECT_THAT(unfinished_tunings(request.runs_folder), testing::IsEmpty());
    EXPECT_EQ(values_of(report), values_of(expected)) << "stopped after step " << stop_after;
    EXPECT_EQ(report.best, expected.best);
    EXPECT_THAT(store::Store(request.runs_folder).list(), SizeIs(4));
    EXPECT_EQ(values_of(tune(request, {})), values_of(expected)) << "nothing is left to do";
  }
}

TEST(Tune, AGridTrainsEveryTrialToItsEnd) {
  const test::Scratch folder;
  const TuneReport report = tune(request_in(folder, TuneMethod::grid), {});
  for (const TuneTrial& t : report.trials) {
    EXPECT_EQ(t.steps, 8);
    EXPECT_TRUE(t.value);
  }
  const Json json = to_json(report);
  EXPECT_EQ(json["trials"].size(), 4u);
  EXPECT_EQ(json["best"], report.trials[*report.best].run);
  EXPECT_THAT(to_text(report), HasSubstr("(best)"));
  TuneRequest unknown = request_in(folder, TuneMethod::grid);
  unknown.resume = "tune-7";
  EXPECT_THROW(tune(unknown, {}), Error);
}

}  // namespace
}  // namespace mw::jobs
