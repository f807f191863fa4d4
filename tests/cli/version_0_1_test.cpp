// SPDX-License-Identifier: GPL-3.0-or-later
// Files written by version 0.1 (scripts/fixtures/version_0_1.py) open in this version with the same meaning.
#include <gtest/gtest.h>

#include "tests/cli/process.h"
#include "tests/cli/version_files.h"

namespace mw::test {
namespace {
namespace fs = std::filesystem;

class Version01 : public FilesOfVersion {
 protected:
  Version01() : FilesOfVersion("version_0_1") {}
};

TEST_F(Version01, ListsRunsWithTheirState) {
  std::string states;
  const Json listed = answer(in_store({"runs"}));
  for (const Json& row : listed.at("rows"))
    states += row.at("id").get<std::string>() + " " + row.at("state").get<std::string>() + " " +
              std::to_string(row.at("steps").get<long>()) + " " + row.at("source").get<std::string>() + "\n";
  EXPECT_EQ(states,
            "run-11 failed 8 measured\nrun-10 done 2 measured\nrun-8 done 9 imported\nrun-7 done 1 imported\n"
            "run-6 done 6 measured\nrun-5 done 2 measured\nrun-4 done 4 measured\nrun-3 done 12 measured\n"
            "run-2 failed 0 measured\nrun-1 done 8 measured\n");
}

TEST_F(Version01, RunsHaveNoChain) {
  const Result result = meshwright(in_store({"verify", "run-1", "--json"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(parse_json(result.out, "verify")["state"], "none") << result.out;
}

TEST_F(Version01, ComparesRunsOfEveryKind) {
  for (const auto& [first, second] : {std::pair("run-1", "run-3"),
                                      {"run-1", "run-4"},
                                      {"run-1", "run-8"},
                                      {"run-5", "run-7"},
                                      {"run-5", "run-9"},
                                      {"run-10", "run-11"}})
    EXPECT_FALSE(answer(in_store({"compare", first, second})).at("rows").empty()) << first << " " << second;
}

TEST_F(Version01, ResumesInterruptedRun) {
  const Result resumed = meshwright(in_store({"run", (folder / "long.json").string(), "--resume", "run-11", "--json"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(lines(resumed.out).back().at("steps"), 12);
  // run-3 is the same experiment, killed and resumed by version 0.1 on another machine, which rounds differently.
  double losses[2] = {};
  const Json listed = answer(in_store({"runs"}));
  for (const Json& row : listed.at("rows")) {
    if (row.at("id") == "run-3") losses[0] = row.at("eval_loss");
    if (row.at("id") == "run-11") losses[1] = row.at("eval_loss");
  }
  EXPECT_GT(losses[0], 1);
  EXPECT_NEAR(losses[0], losses[1], 1e-3 * losses[0]);
}

TEST_F(Version01, GeneratesFromCheckpoints) {
  for (const char* run : {"run-1", "run-3", "run-4", "run-10"})
    EXPECT_FALSE(answer(in_store({"generate", (folder / "train.json").string(), "--run-id", run, "--prompt", "Which"}))
                     .at("text")
                     .is_null())
        << run;
}

TEST_F(Version01, PlansExperiments) {
  for (const char* name : {"train", "long", "full", "mesh", "epochs", "size", "serve", "simulated"})
    EXPECT_TRUE(answer({"plan", (folder / (std::string(name) + ".json")).string()}).contains("fits")) << name;
}

TEST_F(Version01, InspectsCheckpointsAndResults) {
  EXPECT_EQ(answer({"inspect", (folder / "runs/run-1/checkpoint-8").string()}).at("kind"), "adapter");
  EXPECT_EQ(answer({"inspect", (folder / "runs/run-10/checkpoint-2").string()}).at("kind"), "checkpoint");
  EXPECT_EQ(answer({"inspect", (folder / "train.json").string()}).at("kind"), "experiment");
  for (const char* out : {"results", "results-simulated"})
    for (const auto& entry : fs::directory_iterator(folder / out))
      EXPECT_EQ(answer({"inspect", entry.path().string()}).at("kind"), "result") << entry.path();
}

TEST_F(Version01, ReplaysAndAuditsSweeps) {
  EXPECT_FALSE(answer(in_store({"replay", "run-5"})).at("points").empty());
  EXPECT_TRUE(answer(in_store({"audit", "run-7", "--target", "v6e-8", "--model", "gemma3-1b"})).contains("findings"));
}

}  // namespace
}  // namespace mw::test
