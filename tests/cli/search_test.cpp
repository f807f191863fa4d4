// SPDX-License-Identifier: GPL-3.0-or-later
// `search`, and the diagnostics of `plan`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/json.h"
#include "tests/cli/process.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

const std::string kPaper = std::string(MW_RESOURCES) + "/examples/paper-train-v5p-8.json";

Json answer(const std::vector<std::string>& arguments) {
  const Result r = meshwright(arguments);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return parse_json(r.out, "standard output");
}

const Json* diagnostic(const Json& plan, const std::string& id) {
  for (const Json& d : plan["diagnostics"])
    if (d["id"] == id) return &d;
  return nullptr;
}

TEST(SearchCommand, PrintsDocumentedJsonBestFirst) {
  const Json found = answer({"search", kPaper, "--json", "--top", "5"});
  ASSERT_EQ(found["candidates"].size(), 5U);
  double last = 1e300;
  for (const Json& c : found["candidates"]) {
    for (const char* key :
         {"mesh", "batch", "remat", "fits", "seconds_per_step", "tokens_per_second", "usd", "peak_bytes"})
      EXPECT_TRUE(c.contains(key)) << key;
    EXPECT_TRUE(c["fits"].get<bool>());
    EXPECT_EQ(c["mesh"]["fsdp"].get<int>() * c["mesh"]["tp"].get<int>(), 4);
    EXPECT_EQ(c["batch"].get<int>() * c["accumulation"].get<int>(), 8);
    EXPECT_TRUE(c["pareto"].get<bool>());
    EXPECT_LE(c["tokens_per_second"].get<double>(), last);
    last = c["tokens_per_second"].get<double>();
  }
  EXPECT_GT(found["evaluated"].get<int>(), 20);
  EXPECT_GT(found["seconds"].get<double>(), 0);
}

const std::string kServed = std::string(MW_RESOURCES) + "/examples/paper-serve-v6e-8.json";

TEST(SearchCommand, AndCostNameRequestsThatTheServerRejects) {
  const std::vector<std::string> sets{"--set", "serve.input_len=16000",     "--set", "serve.output_len=1000",
                                      "--set", "cost.requests_per_day=1000"};
  for (const char* command : {"plan", "search", "cost"}) {
    std::vector<std::string> arguments{command, kServed};
    arguments.insert(arguments.end(), sets.begin(), sets.end());
    EXPECT_THAT(meshwright(arguments).out, HasSubstr("warning SERVE-5: serve.input_len: ")) << command;
    arguments.push_back("--json");
    EXPECT_NE(diagnostic(answer(arguments), "SERVE-5"), nullptr) << command;
  }
}

TEST(SearchCommand, PlanAndCostNameTheKeyOfAnUnknownTarget) {
  for (const char* command : {"plan", "cost"})
    EXPECT_THAT(meshwright({command, kPaper, "--set", "serve.target=zz", "--set", "cost.requests_per_day=1000"}).err,
                HasSubstr("serve.target: unknown target"));
  EXPECT_THAT(meshwright({"search", kServed, "--targets", "zz"}).err, HasSubstr("--targets: unknown target"));
}

TEST(SearchCommand, CostNamesTheSettingOfAMissingPrice) {
  const Result r = meshwright({"cost", std::string(MW_RESOURCES) + "/examples/tiny-lora.json", "--set",
                               "serve.target=cpu", "--set", "cost.requests_per_day=1000"});
  EXPECT_THAT(r.out, HasSubstr("on demand  no price of cpu; set serve.usd_per_chip_hour"));
}

TEST(SearchCommand, AFixOfAServerHasItsPriceByTokensAndNotByRun) {
  const Json plan = answer({"plan", kServed, "--json", "--set", "serve.input_len=16000"});
  const Json* found = diagnostic(plan, "SERVE-5");
  ASSERT_NE(found, nullptr);
  int priced = 0;
  for (const Json& fix : (*found)["fixes"])
    if (const auto outcome = fix.find("outcome"); outcome != fix.end()) {
      EXPECT_TRUE((*outcome)["usd"].is_null()) << "of a run, as in version 1.0";
      priced += (*outcome)["usd_per_million_tokens"].is_number();
    }
  EXPECT_GT(priced, 0);
}

TEST(SearchCommand, BestCandidateMatchesPlan) {
  const Json best = answer({"search", kPaper, "--json", "--top", "1"})["candidates"][0];
  std::vector<std::string> arguments{"plan", kPaper, "--json"};
  for (const Json& set : best["set"]) arguments.insert(arguments.end(), {"--set", set.get<std::string>()});
  const Json plan = answer(arguments);
  EXPECT_TRUE(plan["fits"].get<bool>());
  EXPECT_DOUBLE_EQ(plan["step"]["seconds"].get<double>(), best["seconds_per_step"].get<double>());
  EXPECT_EQ(plan["devices"][0]["memory"]["total"], best["peak_bytes"]);
}

TEST(SearchCommand, ComparesTargetsAndRanksByCost) {
  const Json found = answer({"search", kPaper, "--json", "--by", "cost", "--targets", "v6e-8,v5p-16", "--top", "0"});
  std::set<std::string> targets;
  double last = 0;
  bool front = true;
  for (const Json& c : found["candidates"]) {
    if (front && !c["pareto"].get<bool>()) front = false, last = 0;  // the others begin
    targets.insert(c["target"].get<std::string>());
    EXPECT_GE(c["usd"].get<double>(), last);
    last = c["usd"].get<double>();
  }
  EXPECT_EQ(targets, (std::set<std::string>{"v5p-16", "v5p-8", "v6e-8"}));
}

TEST(SearchCommand, RejectsUnknownTargetWithSuggestion) {
  const Result r = meshwright({"search", kPaper, "--targets", "v6e-9"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("v6e-8"));
}

TEST(PlanCommand, ReportsUnadaptedModuleWithAWorkingFix) {
  const Json plan = answer({"plan", kPaper, "--json"});
  const Json* missing = diagnostic(plan, "COV-1");
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ((*missing)["severity"], "error");
  EXPECT_THAT((*missing)["message"].get<std::string>(), HasSubstr("k_einsum"));
  EXPECT_THAT((*missing)["fix"].get<std::string>(), HasSubstr("--set"));
  const Json fixed = answer({"plan", kPaper, "--json", "--set", (*missing)["fixes"][0]["set"][0].get<std::string>()});
  EXPECT_EQ(diagnostic(fixed, "COV-1"), nullptr);
}

TEST(PlanCommand, RejectsTpOfEightOnFourGlobalHeads) {
  const Json plan = answer({"plan", kPaper, "--json", "--set", "target.id=v5p-16", "--set", "mesh.tp=8"});
  const Json* heads = diagnostic(plan, "TP-2");
  ASSERT_NE(heads, nullptr);
  std::vector<std::string> arguments{"plan", kPaper, "--json", "--set", "target.id=v5p-16", "--set", "mesh.tp=8"};
  for (const Json& set : (*heads)["fixes"][0]["set"])
    arguments.insert(arguments.end(), {"--set", set.get<std::string>()});
  EXPECT_EQ(diagnostic(answer(arguments), "TP-2"), nullptr);
}

TEST(PlanCommand, SuggestsChangesThatFit) {
  const std::vector<std::string> large{"plan",           kPaper,  "--json",          "--set",
                                       "train.batch=64", "--set", "train.remat=none"};
  const Json plan = answer(large);
  EXPECT_FALSE(plan["fits"].get<bool>());
  const Json* memory = diagnostic(plan, "MEMORY");
  ASSERT_NE(memory, nullptr);
  ASSERT_FALSE((*memory)["fixes"].empty());
  for (const Json& fix : (*memory)["fixes"]) {
    std::vector<std::string> arguments = large;
    for (const Json& set : fix["set"]) arguments.insert(arguments.end(), {"--set", set.get<std::string>()});
    EXPECT_TRUE(answer(arguments)["fits"].get<bool>()) << fix["label"];
  }
}

}  // namespace
}  // namespace mw::test
