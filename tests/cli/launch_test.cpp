// SPDX-License-Identifier: GPL-3.0-or-later
// `launch`: the job survives Ctrl-C and kill -9 of meshwright, and --reattach continues the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct LaunchCommand : testing::Test {
  static constexpr int kSteps = 30;
  Project project;
  fs::path go() const { return project.folder / "go"; }
  // Prints every step as an event and on standard error; waits for the file "go" before step 20.
  std::vector<std::string> launch() const {
    const std::string wait =
        "while [ $i = 20 ] && [ ! -e " + go().string() + " ] && [ -e launch.sh ]; do sleep 0.05; done; ";
    const std::string loop =
        "mkdir -p out/adapter; for i in $(seq 1 " + std::to_string(kSteps) + "); do " + wait +
        "echo \"{\\\"event\\\":\\\"metric\\\",\\\"name\\\":\\\"train/loss\\\",\\\"step\\\":$i,"
        "\\\"value\\\":1}\"; echo said $i >&2; sleep 0.05; done; echo {} > out/adapter/adapter_config.json";
    return project.command("launch", {"--recipe", "trl-fsdp", "--on", "local", "--dir",
                                      (project.folder / "there").string(), "--command", loop});
  }
  std::vector<std::string> again(const std::string& option, const std::string& run) const {
    return {"launch", option, run, "--runs-dir", project.runs.string(), "--json"};
  }
  // Sends a signal at a step and returns the id of the run.
  Result interrupted(int signal, int step, const std::vector<std::string>& arguments) {
    return meshwright(arguments, [&](pid_t pid, const std::string& line) {
      const Json e = parse_json(line, "event");
      if (e["event"] == "metric" && e["step"] == step) ::kill(pid, signal);
    });
  }
  static std::vector<int> steps(const std::vector<Json>& events) {
    std::vector<int> out;
    for (const Json& e : events)
      if (e["event"] == "metric") out.push_back(e["step"].get<int>());
    return out;
  }
};

TEST_F(LaunchCommand, ReattachContinuesTheRecordAfterKill) {
  const Result killed = interrupted(SIGKILL, 6, launch());
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
  const std::string run = lines(killed.out).front()["run"];
  const Result left = interrupted(SIGINT, 15, again("--reattach", run));
  EXPECT_EQ(left.exit_code, 130);
  EXPECT_THAT(left.err, HasSubstr("--reattach " + run));
  EXPECT_THAT(left.err, HasSubstr("--cancel " + run));
  EXPECT_THAT(meshwright({"runs", "--runs-dir", project.runs.string()}).out, HasSubstr("running"));
  std::ofstream(go()) << "go";
  const Result end = meshwright(again("--reattach", run));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(fs::exists(project.runs / run / "fetched/out/adapter/adapter_config.json"));
  // Events printed before the kill may be missing from the store, and are then repeated; one more may be stored.
  const auto first = steps(lines(killed.out)), second = steps(lines(left.out)), third = steps(lines(end.out));
  ASSERT_FALSE(first.empty() || second.empty() || third.empty());
  EXPECT_LE(second.front(), first.back() + 2);
  std::vector<int> told = second, expected;  // each step once from there on
  told.insert(told.end(), third.begin(), third.end());
  for (int step = second.front(); step <= kSteps; ++step) expected.push_back(step);
  EXPECT_EQ(told, expected);
  EXPECT_EQ(meshwright(again("--reattach", run)).exit_code, 2);
}

TEST_F(LaunchCommand, CancelEndsTheJobAndForgetClosesTheRecord) {
  const Result left = interrupted(SIGINT, 2, launch());
  ASSERT_EQ(left.exit_code, 130) << left.err;
  const std::string run = lines(left.out).front()["run"];
  const Result ended = meshwright(again("--cancel", run));
  EXPECT_EQ(ended.exit_code, 130) << ended.err;
  EXPECT_EQ(lines(ended.out).back()["state"], "cancelled");
  fs::remove_all(project.folder / "there");
  const Result second = interrupted(SIGINT, 2, launch());
  const std::string other = lines(second.out).front()["run"];
  EXPECT_EQ(meshwright(again("--forget", other)).exit_code, 0);
  EXPECT_EQ(meshwright(again("--cancel", other)).exit_code, 2);
  fs::remove_all(project.folder / "there");  // ends the job
}

TEST_F(LaunchCommand, RejectsBadUsage) {
  const auto exit_of = [&](std::vector<std::string> more) {
    return meshwright(project.command("launch", more)).exit_code;
  };
  EXPECT_EQ(exit_of({"--on", "local"}), 2);
  EXPECT_EQ(exit_of({"--recipe", "tunix"}), 2);
  EXPECT_EQ(exit_of({"--recipe", "tunix", "--on", "ssh:-oProxyCommand=touch x"}), 2);
  EXPECT_EQ(exit_of({"--recipe", "maxtext", "--on", "local"}), 2);
  EXPECT_EQ(exit_of({"--recipe", "trl-fsdp", "--on", "local", "--fetch", "../x"}), 2);
  EXPECT_EQ(meshwright({"launch", "--reattach", "run-7", "--runs-dir", project.runs.string()}).exit_code, 2);
  EXPECT_FALSE(fs::exists(project.runs / "run-1"));
}

}  // namespace
}  // namespace mw::test
