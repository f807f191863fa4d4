// SPDX-License-Identifier: GPL-3.0-or-later
// `plan` for targets other than this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/base/scratch.h"
#include "tests/cli/process.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

std::string example(const std::string& name) {
  return std::string(MW_RESOURCES "/examples/") + name + ".json";
}

TEST(Plan, PrintsDocumentedJsonForCatalogueTarget) {
  const Result r = meshwright({"plan", example("paper-train-v5p-8"), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json plan = parse_json(r.out, "plan");
  EXPECT_EQ(plan["target"], "v5p-8");
  EXPECT_EQ(plan["devices"].size(), 4u);
  EXPECT_GT(plan["step"]["seconds"].get<double>(), 0);
  EXPECT_GT(plan["run"]["usd"].get<double>(), 0);
}

TEST(Plan, ReportsTrainedParametersOnEveryTarget) {
  const auto trained = [](const std::string& name) {
    return parse_json(meshwright({"plan", example(name), "--json"}).out, "plan")["trainable"];
  };
  EXPECT_EQ(trained("torchax-gemma2-2b-alpaca")["bytes"], 12793376);
  EXPECT_GT(trained("tiny-lora")["params"].get<long>(), 0);
  EXPECT_GT(trained("tiny-lora")["share"].get<double>(), 0);
}

TEST(Plan, OffersTheSmallestChangesThatFitWithTheirPrice) {
  const auto fixes_of = [](const std::vector<std::string>& arguments) {
    const Json plan = parse_json(meshwright(arguments).out, "plan");
    EXPECT_FALSE(plan["fits"].get<bool>());
    for (const Json& d : plan["diagnostics"])
      if (d["id"] == "MEMORY") return d["fixes"];
    return Json::array();
  };
  const std::vector<std::string> tight{"plan", example("tiny-lora"), "--json", "--set", "target.memory_gib=0.02"};
  const Json here = fixes_of(tight);
  ASSERT_FALSE(here.empty());
  for (const Json& fix : here) {
    EXPECT_TRUE(fix["slowdown"].is_number()) << fix.dump();
    std::vector<std::string> fixed = tight;
    for (const Json& set : fix["set"]) fixed.insert(fixed.end(), {"--set", set.get<std::string>()});
    EXPECT_TRUE(parse_json(meshwright(fixed).out, "plan")["fits"].get<bool>()) << fix.dump();
  }
  const Json elsewhere = fixes_of({"plan", example("paper-train-v5p-8"), "--json", "--set", "train.batch=8", "--set",
                                   "train.accumulation=1", "--set", "train.remat=none"});
  ASSERT_FALSE(elsewhere.empty());
  EXPECT_THAT(elsewhere[0]["set"][0].get<std::string>(), testing::Not(HasSubstr("target.id")));
  EXPECT_TRUE(elsewhere[0]["slowdown"].is_number());
}

TEST(Plan, SolvesForABudget) {
  const Result r = meshwright({"plan", example("paper-train-v5p-8"), "--json", "--set", "budget.hours=1"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json budget = parse_json(r.out, "plan")["budget"];
  EXPECT_EQ(budget["bound"], "budget.hours");
  EXPECT_GT(budget["steps"].get<long>(), 300);
  EXPECT_LE(budget["hours"].get<double>(), 1);
  EXPECT_LE(budget["usd"].get<double>(), 16.80);
}

TEST(Cost, ComparesTwoTargetsWithTheTrainingOfPlanOrRun) {
  const Result r = meshwright({"cost", example("paper-train-v5p-8"), "--against", example("paper-train-2xh100"),
                               "--json", "--set", "cost.requests_per_day=50000"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json cost = parse_json(r.out, "cost");
  EXPECT_EQ(cost["serve_target"], "v6e-8");
  EXPECT_EQ(cost["training"]["hours"], 3.34);
  EXPECT_EQ(cost["classes"].size(), 3u);
  EXPECT_GT(cost["classes"][0]["total_usd"].get<double>(), 56.11);
  EXPECT_FALSE(cost["tornado"].empty());
  const Json& against = cost["against"];
  EXPECT_EQ(against["cost"]["serve_target"], "2xh100");
  EXPECT_EQ(against["cost"]["load"]["requests_per_day"], 50000);
  EXPECT_EQ(against["break_even"].size(), 3u);
  const Result text = meshwright({"cost", example("paper-train-v5p-8"), "--set", "cost.requests_per_day=50000"});
  EXPECT_THAT(text.out, HasSubstr("what moves the total most"));
  const Result none = meshwright({"cost", example("paper-train-v5p-8")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("cost.requests_per_day"));
}

TEST(Plan, StepsOnTheCommandLineClearEpochsWithANote) {
  const std::string torchax = example("torchax-gemma2-2b-alpaca");
  const auto steps = [](const Result& r) { return parse_json(r.out, "plan")["run"]["steps"]; };
  EXPECT_EQ(steps(meshwright({"plan", torchax, "--json"})), 6500);
  const Result cleared = meshwright({"plan", torchax, "--json", "--set", "train.steps=7"});
  EXPECT_EQ(steps(cleared), 7);
  EXPECT_THAT(cleared.err, HasSubstr("train.epochs=1 of the experiment is cleared"));
  const Result both = meshwright({"plan", torchax, "--json", "--set", "train.steps=7", "--set", "train.epochs=2"});
  EXPECT_EQ(steps(both), 13000);
  EXPECT_THAT(both.err, HasSubstr("train.steps is ignored"));
}

TEST(Plan, ReadsUserPricesAndReportsBadRows) {
  const Scratch scratch;
  scratch.put("meshwright/hardware/prices.json", R"({"schema": 1, "sources": {"me": "our contract"},
    "prices": [{"chip": "v5p", "usd_per_chip_hour": 1.5, "region": "ours", "class": "1y", "date": "2026-11-21", "source": "me"},
               {"chip": "v5p", "usd_per_chip_hour": "cheap", "region": "ours", "class": "spot", "date": "2026-11-21", "source": "me"}]})");
  setenv("XDG_CONFIG_HOME", scratch.path().c_str(), 1);
  const Result r = meshwright(
      {"plan", example("paper-train-v5p-8"), "--set", "price.region=ours", "--set", "price.class=1y", "--json"});
  unsetenv("XDG_CONFIG_HOME");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.err.find("prices[1]"), std::string::npos) << r.err;
  const Json run = parse_json(r.out, "plan").at("run");
  EXPECT_NEAR(run.at("usd").get<double>() / run.at("hours").get<double>(), 4 * 1.5, 1e-6);
}

TEST(Plan, TargetOptionReplacesTargetAndReportsUnknownOnes) {
  const Result h100 = meshwright({"plan", example("paper-train-v5p-8"), "--target", "8xh100", "--json"});
  ASSERT_EQ(h100.exit_code, 0) << h100.err;
  EXPECT_EQ(parse_json(h100.out, "plan")["devices"].size(), 8u);
  const Result unknown = meshwright({"plan", example("paper-train-v5p-8"), "--target", "v5q-8"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("v5p-8"));
}

TEST(Plan, ComparesTwoPlans) {
  const Result r =
      meshwright({"plan", example("paper-train-v5p-8"), "--against", example("paper-train-2xh100"), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json against = parse_json(r.out, "plan")["against"];
  EXPECT_EQ(against["other"], "2xh100");
  EXPECT_TRUE(against["break_even_hours"].is_null());
}

TEST(Plan, PrintsTableWithoutJson) {
  const Result r = meshwright({"plan", example("gemma3-1b-sizing-v5e")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("does not fit"));
  EXPECT_THAT(r.out, HasSubstr("chunked_forward"));
}

TEST(Plan, PlansServingOnItsTarget) {
  const std::vector<std::string> serve{"--set", "kind=serve", "--set", "target.id=v6e-8", "--set", "mesh.tp=8"};
  std::vector<std::string> plan{"plan", example("paper-train-v5p-8"), "--json"};
  plan.insert(plan.end(), serve.begin(), serve.end());
  const Result planned = meshwright(plan);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_GT(parse_json(planned.out, "plan")["serve"]["kv_tokens"].get<double>(), 1000);
}

TEST(Plan, ListsEveryVirtualDeviceOfThisMachine) {
  std::vector<std::string> plan{"plan", example("tiny-lora"), "--set", "mesh.fsdp=2", "--set", "mesh.tp=2"};
  const Result text = meshwright(plan);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("on the fullest of 4 devices"));
  EXPECT_THAT(text.out, HasSubstr("device 3 (fsdp 1, tp 1): "));
  plan.push_back("--json");
  const Json answer = parse_json(meshwright(plan).out, "plan");
  ASSERT_EQ(answer["devices"].size(), 4u);
  for (int d = 0; d < 4; ++d) {
    const Json& device = answer["devices"][static_cast<size_t>(d)];
    EXPECT_EQ(device["id"], d);
    EXPECT_GT(device["memory"]["collectives"].get<double>(), 0);
  }
  EXPECT_EQ(answer["mesh"], "fsdp 2, tp 2");
}

}  // namespace
}  // namespace mw::test
