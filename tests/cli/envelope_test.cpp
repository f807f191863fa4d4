// SPDX-License-Identifier: GPL-3.0-or-later
// `envelope`: its JSON, its table, what is said before, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/scratch.h"
#include "tests/cli/process.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

std::vector<std::string> envelope_command(const std::vector<std::string>& more) {
  std::vector<std::string> command{"envelope", MW_RESOURCES "/examples/paper-serve-v6e-8.json",
                                   "--set",    "sweep.request_rates=1,16",
                                   "--set",    "sweep.input_lens=1024",
                                   "--set",    "sweep.output_len=64",
                                   "--set",    "sweep.num_prompts=40"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

TEST(Envelope, PrintsDocumentedJson) {
  const Result r = meshwright(envelope_command({"--json", "--metric", "median_e2el"}));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json j = parse_json(r.out, "standard output");
  EXPECT_EQ(j["target"], "v6e-8");
  EXPECT_EQ(j["source"], "predicted");
  EXPECT_EQ(j["metric"], "median_e2el");
  EXPECT_EQ(j["repeats"], 5);
  EXPECT_EQ(j["percentile"]["p"], 50);
  EXPECT_EQ(j["percentile"]["requests"], 40);
  EXPECT_EQ(j["percentile"]["needed"], 6);
  EXPECT_EQ(j["percentile"]["rank_low"], 14);  // of a binomial with 40 and one half
  EXPECT_EQ(j["percentile"]["rank_high"], 27);
  ASSERT_EQ(j["lengths"].size(), 1u);
  const Json& line = j["lengths"][0];
  EXPECT_EQ(line["input_len"], 1024);
  ASSERT_EQ(line["points"].size(), 2u);
  for (const Json& point : line["points"]) {
    double best = 0, least = 1e300;
    for (const Json& mesh : point["meshes"]) {
      least = std::min(least, mesh["ms"].get<double>());
      if (mesh["name"] == point["best"]) best = mesh["ms"];
      EXPECT_LE(mesh["ms_low"].get<double>(), mesh["ms"].get<double>());
      EXPECT_GE(mesh["ms_high"].get<double>(), mesh["ms"].get<double>());
    }
    EXPECT_EQ(best, least);
  }
  EXPECT_EQ(line["crossovers"].empty(), line["points"][0]["best"] == line["points"][1]["best"]);
  EXPECT_THAT(r.err, HasSubstr("of 3 meshes and replicas of v6e-8, each load 5 times"));
  // The same again: a function of the experiment.
  EXPECT_EQ(meshwright(envelope_command({"--json", "--metric", "median_e2el"})).out, r.out);
}

TEST(Envelope, PrintsATableAndSaysWhatAPercentileNeeds) {
  const Result r = meshwright(envelope_command({}));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("p99 of 40 requests has no upper bound"));
  for (const char* part : {"best mesh", "tp 8", "p99_ttft in ms", "1024 prompt tokens", "predicted"})
    EXPECT_THAT(r.out, HasSubstr(part));
}

TEST(Envelope, RejectsWhatHasNoEnvelope) {
  for (const auto& [set, place] :
       {std::pair{"sweep.arrival=burst", "sweep.arrival"}, std::pair{"target.id=cpu", "target.id"},
        std::pair{"sweep.num_prompts=0", "sweep.num_prompts"}}) {
    const Result r = meshwright(envelope_command({"--set", set}));
    EXPECT_EQ(r.exit_code, 2) << set;
    EXPECT_THAT(r.err, HasSubstr(place)) << set;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_EQ(meshwright(envelope_command({"--metric", "mean"})).exit_code, 2);
}

TEST(Sweep, SaysBeforeTheFirstPointHowWellAPercentileIsKnown) {
  const Scratch folder;
  const Result r = meshwright({"sweep", MW_RESOURCES "/examples/paper-serve-v6e-8.json", "--runs-dir",
                               (folder.path() / "runs").string(), "--set", "sweep.request_rates=1", "--set",
                               "sweep.input_lens=512", "--set", "sweep.num_prompts=30"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("p99 of 30 requests has no upper bound at 95 % confidence; 368 requests are needed"));
}

}  // namespace
}  // namespace mw::test
