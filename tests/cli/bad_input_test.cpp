// SPDX-License-Identifier: GPL-3.0-or-later
// Bad input gives one clear error and the right exit code, and creates no partial run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void expect_refused(const Result& r, const testing::Matcher<const std::string&>& message, int exit_code = 2) {
  EXPECT_EQ(r.exit_code, exit_code) << r.err;
  EXPECT_THAT(r.err, message);
  EXPECT_THAT(r.err, Not(HasSubstr("terminate called")));
}

TEST(BadInput, Usage) {
  expect_refused(meshwright({"frobnicate", "x", "y"}), testing::Not(testing::IsEmpty()));
  expect_refused(meshwright({"run", "/nowhere/e.json"}), HasSubstr("/nowhere/e.json"));
  const Project p;
  expect_refused(meshwright(p.command("run", {"--set", "train.stepz=3"})), HasSubstr("did you mean train.steps"));
  expect_refused(meshwright(p.command("run", {"--set", "train.steps=-3"})),
                 AllOf(HasSubstr("train.steps"), HasSubstr("-3")));
  EXPECT_FALSE(fs::exists(p.runs / "run-1"));
}

TEST(BadInput, ExperimentFromANewerVersion) {
  const Project p;
  p.write_experiment({{"schema", 2}});
  expect_refused(meshwright(p.command("run")), AllOf(HasSubstr("newer"), HasSubstr("schema")));
}

TEST(BadInput, ModelFolder) {
  const Project p;
  expect_refused(meshwright(p.command("run", {"--set", "model.path=/nowhere"})), HasSubstr("/nowhere"));
  expect_refused(meshwright(p.command("run", {"--set", "model.init=load"})), HasSubstr("safetensors"));
  Json config = read_json(p.model / "config.json");
  config["model_type"] = "llama";
  config["architectures"] = {"LlamaForCausalLM"};
  write_file_atomically(p.model / "config.json", config.dump());
  expect_refused(meshwright(p.command("run")), HasSubstr("lama"));
}

TEST(BadInput, ModelFolderWithoutWeightsCreatesNoRun) {
  const Project p;
  for (const char* kind : {"kind=train", "kind=size", "kind=serve"})
    expect_refused(meshwright(p.command("run", {"--set", "model.init=load", "--set", kind})),
                   AllOf(HasSubstr(p.model.string()), HasSubstr("contains no weights"),
                         HasSubstr("model.safetensors or model.safetensors.index.json")));
  EXPECT_FALSE(fs::exists(p.runs / "run-1"));
  write_file_atomically(p.model / "model.safetensors.index.json",
                        R"({"weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors"}})");
  expect_refused(meshwright(p.command("run", {"--set", "model.init=load"})),
                 AllOf(HasSubstr(p.model.string()), HasSubstr("model-00001-of-00002.safetensors")));
  EXPECT_FALSE(fs::exists(p.runs / "run-1"));
}

TEST(BadInput, NamesTheRunThatFailedBeforeItStarted) {
  const Project p;
  write_file_atomically(p.data, "{\"prompt\": \"half\n");
  const Result text = meshwright({"run", p.experiment.string(), "--runs-dir", p.runs.string()});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.out, testing::StartsWith("run-1 failed: 0 steps"));
  const Result json = meshwright(p.command("run"));
  EXPECT_EQ(lines(json.out).back()["run"], "run-2");
}

TEST(BadInput, ReportsLineOfMalformedRowOrCountsSkippedRows) {
  const Project p;
  std::string rows = read_file(p.data);
  rows.insert(rows.find('\n') + 1, "{\"prompt\": \"half\n");
  write_file_atomically(p.data, rows);
  expect_refused(meshwright(p.command("run")), AllOf(HasSubstr("rows.jsonl"), HasSubstr("line 2")));
  const Result skipped = meshwright(p.command("run", {"--set", "data.on_error=skip"}));
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  for (const Json& e : lines(skipped.out))
    if (e["event"] == "started") {
      EXPECT_EQ(e["info"]["data"]["skipped_bad"], 1);
    }
}

TEST(BadInput, RejectsEmptyDatasetAndOverlongRows) {
  const Project p;
  expect_refused(meshwright(p.command("run", {"--set", "data.max_len=4"})), HasSubstr("rows.jsonl"));
  write_file_atomically(p.data, "");
  expect_refused(meshwright(p.command("run")), HasSubstr("rows.jsonl"));
}

TEST(BadInput, UnwritableRunStore) {
  const Project p;
  const Result r = meshwright({"run", p.experiment.string(), "--runs-dir", "/proc/nowhere"});
  EXPECT_NE(r.exit_code, 0);
  EXPECT_THAT(r.err, HasSubstr("/proc/nowhere"));
}

TEST(ReadOnlyStore, CanBeReadButNotWritten) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.steps=2"})).exit_code, 0);
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.steps=2", "--set", "train.seed=8"})).exit_code, 0);
  fs::permissions(p.folder, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  for (const auto& entry : fs::recursive_directory_iterator(p.folder))
    fs::permissions(entry.path(),
                    fs::perms::owner_read | fs::perms::others_read |
                        (entry.is_directory() ? fs::perms::owner_exec | fs::perms::others_exec : fs::perms::none));
  const auto reader = [](const std::vector<std::string>& arguments) {
    return meshwright(arguments, {}, {.unprivileged = true});
  };
  const Result list = reader({"runs", "--runs-dir", p.runs.string(), "--json"});
  if (list.exit_code == 126 || list.exit_code == 127) GTEST_SKIP() << "another user cannot run the program";
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_EQ(parse_json(list.out, "runs")["rows"].size(), 2u);
  const Result compared = reader({"compare", "run-1", "run-2", "--runs-dir", p.runs.string(), "--json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const Result inspected = reader({"inspect", (p.runs / "run-1/checkpoint-2").string()});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  expect_refused(reader(p.command("run")),
                 AllOf(HasSubstr(p.runs.string() + ": the run store is read-only"), HasSubstr("--runs-dir")));
  for (const auto& entry : fs::recursive_directory_iterator(p.folder))
    fs::permissions(entry.path(), fs::perms::owner_all);
}

TEST(BadInput, RejectsTooLongNames) {
  const Project p;
  const std::string longest = "/tmp/" + std::string(300, 'n');
  const std::vector<std::vector<std::string>> commands{
      {"inspect", longest},
      {"plan", longest},
      {"import", longest},
      {"replay", longest},
      {"audit", longest},
      {"compare", longest, longest},
      p.command("run", {"--set", "model.path=" + longest}),
      p.command("run", {"--set", "data.path=" + longest}),
      p.command("export", {"--recipe", "trl-fsdp", "--out", longest}),
      {"merge", "--adapter", longest, "--base", p.model, "--out", p.runs / "merged"},
      {"merge", "--adapter", p.model, "--base", longest, "--out", p.runs / "merged"},
      p.command("generate", {"--adapter", longest, "--prompt", "x"})};
  for (const auto& command : commands)
    expect_refused(meshwright(command), AllOf(HasSubstr("nnn"), Not(HasSubstr("unexpected"))));
}

TEST(BadInput, RejectsStoreThatIsNotADatabase) {
  const Project p;
  meshwright({"runs", "--runs-dir", p.runs.string()});
  for (const auto& entry : fs::directory_iterator(p.runs))
    if (entry.is_regular_file())
      write_file_atomically(entry.path(), "this is no database, it is a text of some length");
  const Result r = meshwright(p.command("run"));
  EXPECT_NE(r.exit_code, 0);
  EXPECT_THAT(r.err, HasSubstr(p.runs.string()));
}

TEST(BadInput, FullDiskIsOneErrorAndKeepsTheStoreReadable) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.steps=3"})).exit_code, 0);
  const Result r = meshwright(p.command("run", {"--set", "lora.rank=64"}), {}, {.file_bytes = 300 * 1024});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_THAT(r.err, AllOf(Not(HasSubstr("terminate called")), HasSubstr("ulimit -f"), HasSubstr(p.runs.string())));
  const Result list = meshwright({"runs", "--runs-dir", p.runs.string(), "--json"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  EXPECT_FALSE(parse_json(list.out, "runs")["rows"].empty());
}

TEST(BadInput, NonFiniteLossNamesTheStepAndKeepsTheCheckpoint) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.method=full", "--set", "train.steps=1"})).exit_code, 0);
  const fs::path sick = p.runs / "run-1" / "checkpoint-1";
  const std::string good = read_file(sick / "model.safetensors");
  std::string weights = good;
  weights.replace(weights.size() - 2, 2, "\xc0\x7f");  // sets the last value to a bf16 NaN
  write_file_atomically(sick / "model.safetensors", weights);
  expect_refused(meshwright(p.command("run", {"--set", "model.path=" + sick.string(), "--set", "model.init=load"})),
                 AllOf(HasSubstr("model.norm.weight"), HasSubstr("NaN")));
  weights = good;
  std::uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  const size_t data = sizeof header + header;
  weights.replace(data, std::string::npos,
                  std::string(weights.size() - data, '\x7f'));  // all 3.4e38: finite, too large
  write_file_atomically(sick / "model.safetensors", weights);
  const Result r = meshwright(p.command("run", {"--set", "model.path=" + sick.string(), "--set", "model.init=load"}));
  EXPECT_EQ(r.exit_code, 1);
  const Json last = lines(r.out).back();
  EXPECT_EQ(last["state"], "failed");
  EXPECT_THAT(last["error"].get<std::string>(), AllOf(HasSubstr("step"), HasSubstr("learning_rate")));
}

TEST(BadInput, PromptLongerThanTheContext) {
  const Project p;
  std::string prompt;
  for (int i = 0; i < 400; ++i) prompt += "word ";
  expect_refused(meshwright(p.command("generate", {"--prompt", prompt})), HasSubstr("context"));
}

TEST(BadInput, MemoryLimitTooSmall) {
  const Project p;
  const Result r = meshwright(p.command("run", {"--set", "target.memory_gib=0.0005"}));
  EXPECT_NE(r.exit_code, 0);
  EXPECT_THAT(r.err, HasSubstr("memory"));
}

}  // namespace
}  // namespace mw::test
