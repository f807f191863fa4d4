// SPDX-License-Identifier: GPL-3.0-or-later
// Runs and data of other programs: `watch --follow`, `export` with data.source, `audit` of training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(WatchFollow, RecordsAFileOfEventsToItsEnd) {
  const Project project;
  const fs::path file = project.folder / "events.jsonl";
  write_file_atomically(file, R"({"event":"started","steps":1,"name":"elsewhere"}
{"event":"metric","name":"train/loss","step":1,"value":2.5,"time_s":1}
{"event":"finished","state":"done","steps":1,"seconds":2}
)");
  const auto follow = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"watch", "--runs-dir", project.runs.string(), "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return meshwright(all);
  };
  const Result done = follow({"--follow", file.string(), "--name", "mine"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr(R"("state":"done")"));
  EXPECT_THAT(meshwright({"runs", "--runs-dir", project.runs.string()}).out, HasSubstr("mine"));
  EXPECT_EQ(follow({"--follow", (project.folder / "nothing").string()}).exit_code, 2);
  EXPECT_EQ(follow({"--follow", file.string(), "--", "true"}).exit_code, 2);
  EXPECT_EQ(follow({}).exit_code, 2);
  write_file_atomically(file, R"({"event":"metric","name":"train/loss","step":1,"value":2.5})"
                              "\n");
  EXPECT_EQ(follow({"--follow", file.string(), "--idle", "0.2"}).exit_code, 1);
}

TEST(Export, NamesTheSourceOfMissingData) {
  const Project project;
  const Result made = meshwright({"export", MW_RESOURCES "/examples/paper-train-v5p-8.json", "--recipe", "torchax",
                                  "--set", "data.source=codev-r1", "--set", "lora.module_path=", "--out",
                                  (project.folder / "out").string(), "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Json source = parse_json(made.out, "export")["source"];
  EXPECT_EQ(source["id"], "zhuyaoyu/CodeV-R1-dataset");
  EXPECT_EQ(source["license"], "cc-by-sa-4.0");
  const Json settings = read_json(project.folder / "out" / "settings.json");
  EXPECT_EQ(settings["data"]["source"]["config"], "sft");
  EXPECT_EQ(settings["data"]["columns"]["completion"], "response");
  EXPECT_GT(settings["predicted"]["total"].get<double>(), 1e9) << "memory beside which the run is drawn";
  const Result bad = meshwright({"export", MW_RESOURCES "/examples/paper-train-v5p-8.json", "--recipe", "torchax",
                                 "--set", "data.source=alpakka", "--out", (project.folder / "no").string()});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("alpaca, gsm8k, codev-r1"));
}

TEST(Audit, ChecksClaimsAboutTraining) {
  const Project project;
  const fs::path file = project.folder / "claims.json";
  write_file_atomically(file, R"({"training_claims": [
    {"name": "possible", "model": "gemma4-31b", "target": "v5p-8", "method": "lora", "tokens_per_second": 763},
    {"name": "not", "model": "gemma4-31b", "target": "v5p-8", "method": "lora", "tokens_per_second": 76300}]})");
  const Result result = meshwright({"audit", file.string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json training = parse_json(result.out, "audit")["training"];
  ASSERT_EQ(training.size(), 2u);
  EXPECT_EQ(training[0]["verdict"], "fine");
  EXPECT_EQ(training[0]["mfu"][0]["formula"], "6N, tokens without padding");
  EXPECT_EQ(training[1]["verdict"], "impossible");
  EXPECT_EQ(training[1]["findings"][0]["rule"], "FLOOR-COMPUTE");
  write_file_atomically(file, R"({"training_claims": [{"speed": 1}]})");
  EXPECT_EQ(meshwright({"audit", file.string()}).exit_code, 2);
}

}  // namespace
}  // namespace mw::test
