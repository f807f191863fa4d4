// SPDX-License-Identifier: GPL-3.0-or-later
// Effects of differences: a single difference explains the whole gap between two predictions, and what changes nothing
// does not confound.
#include "core/compare/attribution.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/plan/document/plan_request.h"
#include "core/serve/load/sweep.h"
#include "tests/shipped.h"

namespace mw::compare {
namespace {

using experiment::Experiment;
using test::context;
using testing::HasSubstr;
using Settings = std::vector<std::pair<std::string, std::string>>;

Experiment with(Experiment e, const Settings& settings) {
  for (const auto& [key, value] : settings) e.set(key, value);
  return e;
}

Experiment server() {
  return with({}, {{"kind", "serve"},
                   {"model.id", "gemma3-1b"},
                   {"target.id", "v6e-1"},
                   {"mesh.tp", "1"},
                   {"train.dtype", "bf16"},
                   {"sweep.request_rates", "[1, 8]"},
                   {"sweep.input_lens", "[1024]"},
                   {"sweep.num_prompts", "40"},
                   {"sweep.output_len", "64"},
                   {"sweep.prompts", "salted"}});
}

// A sweep whose values are those of the simulator, as a column.
ComparedRun served(const std::string& name, const Experiment& e) {
  formats::BenchSet set = serve::sweep_facts(e.config(), context().catalogue);
  set.name = name;
  for (const double rate : {1.0, 8.0}) set.points.push_back(simulated_point(e, {rate, 1024}, context()));
  ComparedRun out = compared(std::move(set));
  out.experiment = e;
  return out;
}

// A training run whose speed is `speed` tokens/s.
ComparedRun trained(const std::string& name, const Experiment& e, double speed) {
  views::RunView view;
  view.feed({0, event::Started{{{"steps", 3}}}});
  for (long step = 1; step <= 3; ++step) view.feed({1.0 * step, event::Metric{"train/tokens_per_second", step, speed}});
  event::Finished finished;
  finished.state = RunState::done;
  finished.steps = 3;
  view.feed({4, finished});
  ComparedRun out{.id = name, .name = name, .experiment = e};
  out.training = std::move(view);
  return out;
}

Experiment trainer() {
  return with({}, {{"kind", "train"}, {"model.id", "gemma3-1b"}, {"target.id", "v5e-1"}, {"data.max_len", "512"}});
}

double planned_speed(const Experiment& e) {
  return plan::predict(plan::plan_request(e, context())).run.tokens_per_second;
}

Comparison estimated(const std::vector<ComparedRun>& runs) {
  Comparison comparison = compare(runs);
  const GapInput input = gap_input(comparison, runs);
  return with_effects(std::move(comparison), input, context());
}

const Effects* effects_of(const Comparison& c, const std::string& key) {
  for (const Confounder& confounder : c.confounders)
    if (confounder.key == key) return &confounder.effects;
  for (const ComparisonRow& row : c.rows)
    if (row.key == key && row.kind == ComparisonRow::Kind::setting) return &row.effects;
  return nullptr;
}

TEST(Attribution, OneDifferenceOfServersExplainsTheWholeGap) {
  const Comparison c = estimated({served("a", server()), served("b", with(server(), {{"target.id", "1xh100"}}))});
  ASSERT_TRUE(c.gap && c.gap->missing.empty()) << (c.gap ? c.gap->missing : "no gap");
  EXPECT_THAT(c.gap->label, HasSubstr("E2E"));
  const Effects* target = effects_of(c, "target");
  ASSERT_TRUE(target && target->by_column.size() == 2 && target->by_column[1]) << (target ? target->missing : "none");
  EXPECT_FALSE(target->by_column[0]);
  ASSERT_TRUE(target->by_column[1]->share);
  EXPECT_NEAR(*target->by_column[1]->share, 1, 1e-9);
  EXPECT_NEAR(target->by_column[1]->change, *c.gap->measured[1] / *c.gap->measured[0] - 1, 1e-9);
}

TEST(Attribution, SharesOfTwoDifferencesAreRankedAndShown) {
  const Comparison c = estimated(
      {served("a", server()),
       served("b", with(server(), {{"target.id", "1xh100"}, {"serve.max_num_seqs", "2"}, {"serve.kv_dtype", "fp8"}}))});
  std::vector<double> shares;
  for (const Confounder& confounder : c.confounders) {
    if (!confounder.effects.any()) continue;
    ASSERT_TRUE(confounder.effects.by_column[1]->share) << confounder.key;
    shares.push_back(std::abs(*confounder.effects.by_column[1]->share));
    EXPECT_THAT(effects_text(c, confounder.effects), HasSubstr("of gap (")) << confounder.key;
  }
  ASSERT_GE(shares.size(), 2U);
  EXPECT_TRUE(std::is_sorted(shares.rbegin(), shares.rend()));
  EXPECT_GT(shares[0], 2 * shares[1]) << "two rows at a time cost more than 16-bit KV";
  EXPECT_EQ(c.confounders.front().key, "max_num_seqs");
  EXPECT_EQ(c.verdict, Fairness::confounded);
}

TEST(Attribution, ALimitThatIsNeverReachedDoesNotConfound) {
  const std::vector<ComparedRun> runs{
      served("a", with(server(), {{"serve.max_num_seqs", "200"}})),
      served("b", with(server(), {{"target.id", "1xh100"}, {"serve.max_num_seqs", "256"}}))};
  EXPECT_EQ(compare(runs).verdict, Fairness::confounded);
  const Comparison c = estimated(runs);
  const auto limit = std::find_if(c.confounders.begin(), c.confounders.end(),
                                  [](const Confounder& k) { return k.key == "max_num_seqs"; });
  ASSERT_NE(limit, c.confounders.end());
  EXPECT_TRUE(limit->is_negligible) << effects_text(c, limit->effects);
  const bool others =
      std::any_of(c.confounders.begin(), c.confounders.end(), [](const Confounder& k) { return !k.is_negligible; });
  EXPECT_EQ(c.verdict, others ? Fairness::confounded : Fairness::fair);
}

TEST(Attribution, ADifferenceThatTheSimulatorDoesNotHaveKeepsItsReasonAndTheVerdict) {
  ComparedRun other = served("b", server());
  other.sweep->set.conditions["version"] = "0.20.0";
  const Comparison c = estimated({served("a", server()), other});
  const Effects* version = effects_of(c, "version");
  ASSERT_TRUE(version);
  EXPECT_FALSE(version->any());
  EXPECT_THAT(version->missing, HasSubstr("no model"));
  EXPECT_EQ(c.verdict, Fairness::confounded);
}

TEST(Attribution, OneDifferenceOfTrainingRunsExplainsTheirSpeed) {
  const Experiment a = trainer(), b = with(trainer(), {{"lora.rank", "128"}});
  const Comparison c = estimated({trained("a", a, planned_speed(a)), trained("b", b, planned_speed(b))});
  const Effects* rank = effects_of(c, "lora.rank");
  ASSERT_TRUE(rank && rank->any()) << (rank ? rank->missing : "none");
  const double gap = planned_speed(b) / planned_speed(a) - 1;
  EXPECT_NEAR(rank->by_column[1]->change, gap, 1e-9);
  ASSERT_GE(std::abs(gap), 0.01);
  EXPECT_NEAR(rank->by_column[1]->share.value_or(0), 1, 1e-9);
}

TEST(Attribution, ALossMaskConfoundsHoweverFastItIs) {
  const Experiment a = trainer(), b = with(trainer(), {{"data.loss", "all"}, {"train.batch", "8"}});
  const Comparison c = estimated({trained("a", a, planned_speed(a)), trained("b", b, planned_speed(b))});
  const auto mask = std::find_if(c.confounders.begin(), c.confounders.end(),
                                 [](const Confounder& k) { return k.key == "loss_mask"; });
  ASSERT_NE(mask, c.confounders.end());
  EXPECT_FALSE(mask->is_negligible);
  EXPECT_EQ(c.verdict, Fairness::confounded);
}

TEST(Attribution, AChangeThatTheBaselineCannotTakeIsNotEstimated) {
  const Experiment a = trainer(), b = with(trainer(), {{"target.id", "no-such-target"}});
  const Comparison c = estimated({trained("a", a, 100), trained("b", b, 90)});
  ASSERT_TRUE(c.gap);
  EXPECT_FALSE(c.gap->missing.empty());
  const Effects* target = effects_of(c, "target.id");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->missing, c.gap->missing);
}

TEST(Attribution, JsonHasTheGapAndTheEffects) {
  const Json j = to_json(estimated({served("a", server()), served("b", with(server(), {{"target.id", "1xh100"}}))}));
  ASSERT_TRUE(j.contains("gap"));
  EXPECT_EQ(j["gap"]["predicted"].size(), 2U);
  const auto row = std::find_if(j["rows"].begin(), j["rows"].end(), [](const Json& r) { return r["key"] == "target"; });
  ASSERT_NE(row, j["rows"].end());
  EXPECT_TRUE((*row)["effects"][0].is_null());
  EXPECT_NEAR((*row)["effects"][1]["share"].get<double>(), 1, 1e-9);
}

TEST(Attribution, AStopEndsTheEstimate) {
  const std::vector<ComparedRun> runs{served("a", server()), served("b", server())};
  const Comparison comparison = compare(runs);
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(with_effects(comparison, gap_input(comparison, runs), context(), source.get_token()), Error);
}

}  // namespace
}  // namespace mw::compare
