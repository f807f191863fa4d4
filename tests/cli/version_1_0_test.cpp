// SPDX-License-Identifier: GPL-3.0-or-later
// Files written by version 1.0 (scripts/fixtures/version_1_0.py) open in this version with the same meaning.
#include <gtest/gtest.h>

#include "tests/cli/process.h"
#include "tests/cli/version_files.h"

namespace mw::test {
namespace {
namespace fs = std::filesystem;

class Version10 : public FilesOfVersion {
 protected:
  Version10() : FilesOfVersion("version_1_0") {}
};

TEST_F(Version10, ListsRunsWithTheirState) {
  std::string states;
  const Json listed = answer(in_store({"runs"}));
  for (const Json& row : listed.at("rows"))
    states += row.at("id").get<std::string>() + " " + row.at("state").get<std::string>() + " " +
              std::to_string(row.at("steps").get<long>()) + " " + row.value("tags", "") + "\n";
  EXPECT_EQ(states,
            "run-8 done 6 \nrun-7 done 2 \nrun-6 done 2 tune-1\nrun-5 done 2 tune-1\nrun-4 done 8 \n"
            "run-3 done 4 \nrun-2 failed 4 \nrun-1 done 8 \n");
}

// The folder of the experiment is part of a run's chain: the store stays as it was written.
TEST_F(Version10, ChainsOfRunsAreWhole) {
  const fs::path written = scratch.path() / "written";
  fs::copy(fs::path(MW_FIXTURES) / "version_1_0/runs", written, fs::copy_options::recursive);
  for (const char* run : {"run-1", "run-3", "run-4", "run-5"})
    EXPECT_EQ(answer({"verify", run, "--runs-dir", written.string()}).at("state"), "intact") << run;
}

TEST_F(Version10, RunRecordsNameTheVersion) {
  const fs::path report = scratch.path() / "report.html";
  const Result written = meshwright(in_store({"report", "run-1", "--out", report.string()}));
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_NE(bytes_of(report).find(">Meshwright 1.0.0<"), std::string::npos);
}

TEST_F(Version10, ComparesRunsOfEveryKind) {
  for (const auto& [first, second] : {std::pair("run-1", "run-3"), {"run-1", "run-4"}, {"run-5", "run-6"}})
    EXPECT_FALSE(answer(in_store({"compare", first, second})).at("rows").empty()) << first << " " << second;
}

TEST_F(Version10, ResumesInterruptedRun) {
  const Result resumed = meshwright(in_store({"run", (folder / "long.json").string(), "--resume", "run-2", "--json"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(lines(resumed.out).back().at("steps"), 12);
}

TEST_F(Version10, GeneratesFromCheckpoints) {
  for (const auto& [experiment, run] : {std::pair("train.json", "run-1"),
                                        {"dora.meshwright.json", "run-3"},
                                        {"best.meshwright.json", "run-4"},
                                        {"tuned.meshwright.json", "run-6"}})
    EXPECT_FALSE(answer(in_store({"generate", (folder / experiment).string(), "--run-id", run, "--prompt", "Which"}))
                     .at("text")
                     .is_null())
        << run;
}

TEST_F(Version10, InspectsCheckpointsTablesAndResults) {
  EXPECT_EQ(answer({"inspect", (folder / "runs/run-3/checkpoint-4").string()}).at("kind"), "adapter");
  EXPECT_EQ(answer({"inspect", (folder / "best.meshwright.json").string()}).at("kind"), "experiment");
  EXPECT_EQ(answer({"inspect", (folder / "shared.meshwright.tar.zst").string()}).at("kind"), "bundle");
  for (const auto& entry : fs::directory_iterator(folder / "results"))
    EXPECT_EQ(answer({"inspect", entry.path().string()}).at("kind"), "result") << entry.path();
}

TEST_F(Version10, ImportsBundlesWithTheirCheckpoints) {
  const fs::path other = scratch.path() / "other";
  const Result imported =
      meshwright({"import", (folder / "shared.meshwright.tar.zst").string(), "--runs-dir", other.string()});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_TRUE(fs::exists(other / "run-1/checkpoint-8/adapter_model.safetensors"));
  EXPECT_EQ(answer({"verify", "run-1", "--runs-dir", other.string()}).at("state"), "intact");
}

TEST_F(Version10, FinishesATuning) {
  const Json ended = answer(in_store({"tune", "--resume", "tune-1"}));
  EXPECT_NE(ended.dump().find("run-6"), std::string::npos) << ended.dump();
}

TEST_F(Version10, ReplaysSweeps) {
  EXPECT_FALSE(answer(in_store({"replay", "run-7"})).at("points").empty());
}

}  // namespace
}  // namespace mw::test
