// SPDX-License-Identifier: GPL-3.0-or-later
// The causes of what a replay changes add up, in 99th percentiles and in dollars.
#include "core/compare/replay.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/serve/load/sweep.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::compare {
namespace {

using test::context;
using testing::ElementsAre;

class ExplainReplay : public testing::Test {
 protected:
  ExplainReplay() {
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"kind", "serve"},
                                                                                     {"model.id", "gemma3-1b"},
                                                                                     {"target.id", "v6e-1"},
                                                                                     {"mesh.tp", "1"},
                                                                                     {"train.dtype", "bf16"},
                                                                                     {"sweep.request_rates", "[4, 16]"},
                                                                                     {"sweep.num_prompts", "20"},
                                                                                     {"sweep.output_len", "64"}})
      here.set(key, value);
    formats::BenchSet set = serve::sweep_facts(here.config(), context().catalogue);
    set.name = "recorded";
    for (const double rate : {4.0, 16.0}) set.points.push_back(simulated_point(here, {rate, 512}, context()));
    for (formats::BenchPoint& point : set.points)  // as on a machine that is slower than its model
      for (auto* stats : {&point.ttft, &point.tpot, &point.e2el}) stats->percentiles[99] *= 1.25;
    ComparedRun run = compared(std::move(set));
    run.experiment = here;
    recording = recording_of(run);
  }
  static std::vector<std::string> names(const ReplayExplanation& explanation) {
    std::vector<std::string> out;
    for (const ReplayCause& cause : explanation.causes) out.push_back(cause.name);
    return out;
  }
  experiment::Experiment here;
  Recording recording;
};

TEST_F(ExplainReplay, CausesAddUpToTheDifference) {
  const experiment::Experiment other = counterfactual(
      here, {{"target.id", "1xh100"}, {"serve.kv_dtype", "fp8"}, {"serve.prefix_cache", "false"}}, context());
  const ReplayExplanation e = explain_replay(recording, here, other, context());
  EXPECT_TRUE(e.recorded);
  EXPECT_THAT(names(e), ElementsAre("model's error", "chips and software", "KV type", "prefix cache"));
  const formats::BenchSet alone = replay(recording, other, context());
  ASSERT_EQ(e.predicted.points.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const ReplayFigures end = replay_figures(alone.points[i], alone.usd_per_hour);
    EXPECT_EQ(e.causes.back().after[i].ttft_p99_ms, end.ttft_p99_ms);
    EXPECT_EQ(e.causes.back().after[i].usd, end.usd);
    EXPECT_TRUE(std::isfinite(end.usd) && end.usd > 0);
    EXPECT_NEAR(e.before[i].e2el_p99_ms / e.causes.front().after[i].e2el_p99_ms, 1.25, 1e-6);
  }
  for (const Json& point : to_json(e))
    for (const char* key : {"ttft_p99_ms", "tpot_p99_ms", "e2el_p99_ms", "usd", "usd_per_million_output_tokens"}) {
      double sum = point["before"][key];
      for (const Json& cause : point["causes"]) sum += cause["delta"][key].get<double>();
      const double end = point["causes"].back()["after"][key];
      EXPECT_NEAR(sum, end, 1e-9 * std::max(1.0, std::abs(end))) << key;
    }
}

TEST_F(ExplainReplay, TheSameServerHasOnlyTheErrorOfTheModel) {
  EXPECT_THAT(names(explain_replay(recording, here, here, context())), ElementsAre("model's error"));
}

TEST_F(ExplainReplay, AWorkloadBeginsAtTheSimulatedServer) {
  for (formats::BenchPoint& point : recording.set.points) point.ttft = point.tpot = point.e2el = {};
  const ReplayExplanation e =
      explain_replay(recording, here, counterfactual(here, {{"serve.kv_dtype", "fp8"}}, context()), context());
  EXPECT_FALSE(e.recorded);
  EXPECT_THAT(names(e), ElementsAre("KV type"));
  EXPECT_EQ(replay_rows(to_json(e)).front().name, "as recorded, simulated");
}

// 27b in bf16 does not fit on one v6e chip with 32 GB; on 8 it does, so that the model is changed with the chips.
TEST_F(ExplainReplay, JoinsFactorsWhoseServerCannotBeSimulated) {
  experiment::Experiment big = counterfactual(here, {{"target.id", "v6e-8"}}, context());
  big.set("model.id", "gemma3-27b");
  const ReplayExplanation grown = explain_replay(recording, here, big, context());
  EXPECT_THAT(names(grown), ElementsAre("model's error", "chips and software", "model"));
  formats::BenchSet set = replay(recording, big, context());
  ComparedRun run = compared(set);
  run.experiment = big;
  const Recording of_big = recording_of(run);
  const ReplayExplanation shrunk = explain_replay(of_big, big, here, context());
  EXPECT_THAT(names(shrunk), ElementsAre("model's error", "chips and software, model"));
}

TEST_F(ExplainReplay, IsKeptWithTheRun) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const experiment::Experiment other = counterfactual(here, {{"serve.kv_dtype", "fp8"}}, context());
  const ReplayExplanation e = explain_replay(recording, here, other, context());
  const store::RunId run = record_replay(store, other, e.predicted, to_json(e));
  const std::vector<ReplayRow> rows = replay_rows(compared(store, run).explained);
  ASSERT_EQ(rows.size(), 8u);  // of each point: as recorded, two causes, as replayed
  EXPECT_EQ(rows[0].name, "as recorded");
  EXPECT_FALSE(rows[0].delta);
  EXPECT_EQ(rows[2].name, "KV type");
  ASSERT_TRUE(rows[2].delta);
  EXPECT_NEAR(rows[2].delta->ttft_p99_ms, rows[2].figures.ttft_p99_ms - rows[1].figures.ttft_p99_ms, 1e-9);
  EXPECT_EQ(rows[3].name, "as replayed");
  EXPECT_TRUE(replay_rows(Json()).empty());
  EXPECT_THROW(replay_rows(Json::array({1})), Error);
}

}  // namespace
}  // namespace mw::compare
