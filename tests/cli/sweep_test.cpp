// SPDX-License-Identifier: GPL-3.0-or-later
// `sweep`: its JSON points, files that vLLM's tools read, interruption and resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kModel{"--backend", "model",
                                      "--set",     "target.id=v6e-8",
                                      "--set",     "mesh.tp=8",
                                      "--set",     "mesh.fsdp=1",
                                      "--set",     "model.path=",
                                      "--set",     "model.id=gemma3-27b",
                                      "--set",     "sweep.request_rates=[1,16]",
                                      "--set",     "sweep.input_lens=[256,1024]",
                                      "--set",     "sweep.num_prompts=40",
                                      "--set",     "sweep.output_len=32"};

std::vector<std::string> with_model(std::vector<std::string> more) {
  more.insert(more.begin(), kModel.begin(), kModel.end());
  return more;
}

TEST(Sweep, PrintsDocumentedJsonAndWritesOneFilePerPoint) {
  const Project p;
  const auto out = p.folder / "points";
  const Result r = meshwright(p.command("sweep", with_model({"--out", out.string()})));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json points = parse_json(r.out, "standard output")["points"];
  ASSERT_EQ(points.size(), 4u);
  for (const Json& point : points) {
    EXPECT_EQ(point["completed"], 40);
    EXPECT_EQ(point["output_len"], 32);
    for (const char* field : {"request_rate", "input_len", "output_throughput", "median_ttft_ms", "p99_ttft_ms",
                              "median_tpot_ms", "p99_itl_ms", "duration", "total_output_tokens"})
      EXPECT_TRUE(point.contains(field) && point[field].is_number()) << field;
  }
  EXPECT_GT(points[3]["median_ttft_ms"].get<double>(), points[0]["median_ttft_ms"].get<double>());
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(out)) {
    const Json one = parse_json(read_file(file.path()), file.path().string());
    EXPECT_EQ(one["ttfts"].size(), 40u) << "detailed, as vLLM writes them";
    ++files;
  }
  EXPECT_EQ(files, 4u);
  const Result runs = meshwright({"runs", "--runs-dir", p.runs.string(), "--json"});
  EXPECT_THAT(runs.out, HasSubstr("predicted"));
}

// The prefix cache is empty at the first rate only, so only that rate misses the SLO. From 4 requests/s, 30 prompts end
// before the server is full.
TEST(Sweep, CapacityIsHighestSteadyRateThatMeetsTheSloAndNamesTheOthers) {
  const Project p;
  std::vector<std::string> command{"sweep", std::string(MW_RESOURCES) + "/examples/paper-serve-v6e-8.json"};
  for (const char* set : {"sweep.slo_ttft_ms=200", "sweep.slo_tpot_ms=25", "sweep.input_lens=[4096]",
                          "sweep.request_rates=[1,2,4,8,16,32,64]"})
    command.insert(command.end(), {"--set", set});
  command.insert(command.end(), {"--runs-dir", p.runs.string()});
  const Result text = meshwright(command);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              HasSubstr("4096 tokens: meets the SLO to 2 requests/s, but not at 1 requests/s; at 4, 8, 16, 32 "
                        "and 64 requests/s the arrivals ended before the server was full"));
  EXPECT_THAT(text.out, HasSubstr("  stable, too short\n"));
  command.push_back("--json");
  const Json capacity = parse_json(meshwright(command).out, "standard output")["capacity"];
  ASSERT_EQ(capacity.size(), 1u);
  EXPECT_EQ(capacity[0]["input_len"], 4096);
  EXPECT_EQ(capacity[0]["at_slo"], 2);
  EXPECT_EQ(capacity[0]["failing_below"], Json::array({1}));
  EXPECT_EQ(capacity[0]["too_short"], Json::array({4, 8, 16, 32, 64}));
}

TEST(Sweep, PrintsTableMarkedAsPredicted) {
  const Project p;
  std::vector<std::string> command = p.command("sweep", kModel);
  std::erase(command, "--json");
  const Result r = meshwright(command);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("predicted"));
  for (const char* text : {"TTFT p50", "TPOT p50", "verdict", "256", "1024"}) EXPECT_THAT(r.out, HasSubstr(text));
}

TEST(Sweep, AServerThatKeepsItsCacheHasAColumnOfHitsAndAColdRate) {
  const Project p;
  const std::vector<std::string> replayed = with_model({"--set", "sweep.prompts=replayed"});
  const Json points = parse_json(meshwright(p.command("sweep", replayed)).out, "standard output")["points"];
  ASSERT_EQ(points.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(points[i].contains("cold"), i % 2 == 0);
    EXPECT_EQ(points[i]["prefix_hits"].get<double>() > 0.8, i % 2 == 1) << points[i]["prefix_hits"];
  }
  for (const bool keeps_cache : {true, false}) {
    std::vector<std::string> command = p.command("sweep", keeps_cache ? replayed : kModel);
    std::erase(command, "--json");
    const std::string out = meshwright(command).out;
    EXPECT_EQ(out.find("hits") != std::string::npos, keeps_cache) << out;
    EXPECT_EQ(out.find("cold 0") != std::string::npos, keeps_cache) << out;
  }
}

TEST(Sweep, SameSeedGivesSameNumbers) {
  const Project p;
  const Result a = meshwright(p.command("sweep", kModel)), b = meshwright(p.command("sweep", kModel));
  EXPECT_EQ(a.out, b.out);
  const Result other = meshwright(p.command("sweep", with_model({"--set", "sweep.seed=2"})));
  EXPECT_NE(a.out, other.out);
}

TEST(Sweep, ResumedGivesFinishedPointsAndTheCapacityToo) {
  const Project p;
  const Result whole = meshwright(p.command("sweep", with_model({"--set", "sweep.slo_ttft_ms=1000"})));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto out = p.folder / "resumed";
  const Result resumed =
      meshwright({"sweep", "--resume", "run-1", "--runs-dir", p.runs.string(), "--json", "--out", out.string()});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.out, whole.out);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}), 4);
  const Result table = meshwright({"sweep", "--resume", "run-1", "--runs-dir", p.runs.string()});
  EXPECT_EQ(table.out.find("TTFT p50"), table.out.rfind("TTFT p50")) << "one header";
}

TEST(Sweep, ComparisonOfSimulatedSweepsStopsAtSigterm) {
  const Project p;
  for (const char* sequences : {"serve.max_num_seqs=64", "serve.max_num_seqs=256"})
    ASSERT_EQ(
        meshwright(p.command("sweep", with_model({"--set", "sweep.num_prompts=20000", "--set", sequences}))).exit_code,
        0);
  const Result r =
      meshwright({"compare", "run-1", "latest", "--runs-dir", p.runs.string()}, {}, {.stop_after_ms = 500});
  EXPECT_EQ(r.exit_code, 130) << r.out;
  EXPECT_THAT(r.err, HasSubstr("the comparison was cancelled"));
  EXPECT_EQ(r.out, "");
}

TEST(Sweep, BadInputNamesTheKeyAndCreatesNoRun) {
  const Project p;
  const Result r = meshwright(p.command("sweep", with_model({"--set", "sweep.request_rates=[-1]"})));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("sweep.request_rates"));
  const Result runs = meshwright({"runs", "--runs-dir", p.runs.string(), "--json"});
  EXPECT_EQ(runs.out.find("run-1"), std::string::npos) << runs.out;
}

// A sweep of this machine has the times of its plan, as on every other target: no weights are read and nothing is
// timed.
TEST(Sweep, SimulatesThisMachineWithTheStepsOfItsPlan) {
  const Project p;
  const auto out = p.folder / "points";
  const std::vector<std::string> settings{
      "--set", "target.id=cpu",           "--set", "kind=serve",
      "--set", "serve.max_num_seqs=4",    "--set", "serve.max_num_batched_tokens=64",
      "--set", "serve.max_model_len=128", "--set", "serve.input_len=32",
      "--set", "serve.output_len=8",      "--set", "sweep.request_rates=[0.001,20]",
      "--set", "sweep.input_lens=[32]",   "--set", "sweep.num_prompts=20",
      "--set", "sweep.output_len=8"};
  std::vector<std::string> sweep = settings;
  sweep.insert(sweep.end(), {"--backend", "model", "--out", out.string()});
  const Result r = meshwright(p.command("sweep", sweep)), again = meshwright(p.command("sweep", sweep));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, again.out);
  EXPECT_THAT(r.err, HasSubstr("every number is predicted: engine on cpu"));
  EXPECT_THAT(r.err, HasSubstr("meshwright bench --save"));
  const Json points = parse_json(r.out, "standard output")["points"];
  ASSERT_EQ(points.size(), 2u);
  for (const Json& point : points) {
    EXPECT_EQ(point["completed"], 20);
    EXPECT_EQ(point["total_output_tokens"], 160);
  }
  const Json plan = parse_json(meshwright(p.command("plan", settings)).out, "standard output");
  EXPECT_NEAR(points[0]["median_ttft_ms"].get<double>() / plan["serve"]["ttft_ms"].get<double>(), 1, 0.01);
  for (const auto& file : std::filesystem::directory_iterator(out))
    EXPECT_EQ(parse_json(read_file(file.path()), file.path().string())["ttfts"].size(), 20u);
  std::vector<std::string> one = settings;
  one.insert(one.end(), {"--top", "1"});
  const Json found = parse_json(meshwright(p.command("search", one)).out, "standard output");
  EXPECT_EQ(found["simulated"], found["fitting"]);
  EXPECT_EQ(found["not_simulated"], nullptr);
  EXPECT_EQ(found["candidates"][0]["sweep"]["points"].size(), 2u);
}

}  // namespace
}  // namespace mw::test
