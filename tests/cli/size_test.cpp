// SPDX-License-Identifier: GPL-3.0-or-later
// `size`: its JSON points, batches that do not fit, adapters, Ctrl-C and the stored run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <map>
#include <set>

#include "tests/base/scratch.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kQuick{"--set", "size.batches=1,3",  "--set", "size.prompt_len=24",
                                      "--set", "size.new_tokens=8", "--set", "size.top_k=10"};

std::vector<std::string> with_size(std::vector<std::string> more) {
  more.insert(more.begin(), kQuick.begin(), kQuick.end());
  return more;
}

std::set<std::string> keys(const Json& object) {
  std::set<std::string> all;
  for (const auto& [key, value] : object.items()) all.insert(key);
  return all;
}

TEST(Size, PrintsDocumentedJson) {
  const Project p;
  const Result r = meshwright(p.command("size", kQuick));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json answer = parse_json(r.out, "standard output");
  EXPECT_EQ(keys(answer), (std::set<std::string>{"points"}));
  const Json& points = answer["points"];
  ASSERT_EQ(points.size(), 6u);
  std::vector<std::pair<std::string, int>> order;
  for (const Json& point : points) {
    EXPECT_EQ(keys(point), (std::set<std::string>{"mode", "batch", "adapters", "predicted", "measured"}));
    order.emplace_back(point["mode"], point["batch"]);
    EXPECT_FALSE(point["adapters"].get<bool>());
    EXPECT_GT(point["predicted"]["seconds"], point["predicted"]["seconds_low"]);
    EXPECT_LT(point["predicted"]["seconds"], point["predicted"]["seconds_high"]);
    EXPECT_TRUE(point["predicted"]["fits"].get<bool>());
    EXPECT_GT(point["measured"]["seconds"].get<double>(), 0);
    EXPECT_NEAR(
        point["measured"]["seconds_per_token"].get<double>() * point["measured"]["tokens_per_second"].get<double>(), 1,
        1e-9);
    for (const char* part : {"predicted", "measured"}) {
      const Json& memory = point[part]["memory"];
      EXPECT_GT(memory["weights"].get<long>(), 0) << part;
      long sum = 0;
      for (const auto& [category, bytes] : memory.items())
        if (category != "total") sum += bytes.get<long>();
      EXPECT_EQ(sum, memory["total"].get<long>());
    }
  }
  EXPECT_EQ(order, (std::vector<std::pair<std::string, int>>{{"rollout", 1},
                                                             {"rollout", 3},
                                                             {"forward", 1},
                                                             {"forward", 3},
                                                             {"chunked_forward", 1},
                                                             {"chunked_forward", 3}}));
  const Result runs = meshwright({"runs", "--runs-dir", p.runs.string(), "--json"});
  EXPECT_THAT(runs.out, HasSubstr("\"size\""));
  EXPECT_THAT(runs.out, HasSubstr("done"));
}

TEST(Size, PrintsTableWithoutJson) {
  const Project p;
  std::vector<std::string> command = p.command("size", kQuick);
  std::erase(command, "--json");
  const Result r = meshwright(command);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"rollout", "forward", "chunked_forward", "ms/token", "kv_cache", "predicted"})
    EXPECT_THAT(r.out, HasSubstr(text));
}

TEST(Size, SkipsBatchesThatCannotFit) {
  const Project p;
  const Result r =
      meshwright(p.command("size", with_size({"--set", "size.batches=1,1000000", "--set", "size.workloads=forward"})));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json points = parse_json(r.out, "standard output")["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_TRUE(points[1]["measured"].is_null());
  EXPECT_FALSE(points[1]["predicted"]["fits"].get<bool>());
  EXPECT_GT(points[1]["predicted"]["largest_batch"].get<int>(), 1);
  EXPECT_GT(points[1]["predicted"]["memory"]["total"].get<double>(), points[1]["predicted"]["capacity_bytes"]);
  EXPECT_THAT(r.err, HasSubstr("largest batch that fits is"));
}

TEST(Size, CountsMemoryOfGivenAndNewAdapters) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.steps=2"})).exit_code, 0);
  const std::vector<std::string> rollout{"--set", "size.workloads=rollout"};
  const auto memory_of = [&](std::vector<std::string> more) {
    more.insert(more.end(), rollout.begin(), rollout.end());
    const Result r = meshwright(p.command("size", with_size(more)));
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return parse_json(r.out, "standard output")["points"][0]["measured"]["memory"];
  };
  EXPECT_FALSE(memory_of({}).contains("adapters"));
  const Json trained = memory_of({"--adapter", (p.runs / "run-1" / "checkpoint-2").string()});
  EXPECT_GT(trained["adapters"].get<long>(), 0);
  EXPECT_EQ(memory_of({"--set", "size.adapters=true"})["adapters"], trained["adapters"]);
}

TEST(Size, PredictsForAnotherTargetWithAndWithoutAdapters) {
  const test::Scratch folder;
  const std::string runs = (folder.path() / "runs").string();
  const std::vector<std::string> command{"size", MW_RESOURCES "/examples/gemma3-1b-sizing-v5e.json", "--runs-dir",
                                         runs};
  std::vector<std::string> json = command;
  json.push_back("--json");
  const Result r = meshwright(json);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json points = parse_json(r.out, "standard output")["points"];
  ASSERT_EQ(points.size(), 72u);
  std::map<std::pair<std::string, int>, std::array<Json, 2>> by_case;
  for (const Json& point : points) {
    EXPECT_EQ(keys(point), (std::set<std::string>{"mode", "batch", "adapters", "predicted", "measured"}));
    EXPECT_TRUE(point["measured"].is_null());
    by_case[{point["mode"], point["batch"]}][point["adapters"].get<bool>() ? 1 : 0] = point["predicted"];
  }
  EXPECT_EQ(by_case.size(), 36u);
  for (const auto& [key, both] : by_case) {
    SCOPED_TRACE(key.first + " " + std::to_string(key.second));
    for (const Json& predicted : both) {
      EXPECT_EQ(predicted["capacity_bytes"].get<std::int64_t>(), std::int64_t{63} << 28);
      const bool fits = predicted["fits"].get<bool>();
      EXPECT_EQ(predicted.contains("seconds"), fits);
      EXPECT_EQ(predicted.contains("largest_batch"), !fits);
      if (!fits) {
        EXPECT_LT(predicted["largest_batch"].get<int>(), key.second);
        continue;
      }
      EXPECT_LE(predicted["seconds_low"].get<double>(), predicted["seconds"].get<double>());
      EXPECT_GE(predicted["seconds_high"].get<double>(), predicted["seconds"].get<double>());
      EXPECT_FALSE(predicted["origin"].get<std::string>().empty());
      EXPECT_EQ(predicted["tokens"].get<int>(), 1024 * key.second);
      EXPECT_NEAR(predicted["seconds_per_token"].get<double>() * predicted["tokens"].get<double>(),
                  predicted["seconds"].get<double>(), 1e-9 * predicted["seconds"].get<double>());
    }
    EXPECT_FALSE(both[0]["memory"].value("adapters", 0) > 0);
    EXPECT_GT(both[1]["memory"]["adapters"].get<long>(), 0);
  }
  const Result text = meshwright(command);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"rollout, predicted", "chunked_forward, with LoRA adapters, predicted",
                           "256 does not fit: predicted", "(low to high)"})
    EXPECT_THAT(text.out, HasSubstr(part));
  const Result listed = meshwright({"runs", "--runs-dir", runs, "--json"});
  EXPECT_THAT(listed.out, HasSubstr("gemma3-1b"));
  EXPECT_THAT(listed.out, HasSubstr("predicted"));
  // The same by `run`, because the experiment is of kind size.
  const Result run = meshwright({"run", command[1], "--runs-dir", runs, "--json", "--set", "size.batches=1"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines(run.out).back()["state"], "done");
}

TEST(Size, RejectsAPredictionBeforeARunIsCreated) {
  const test::Scratch folder;
  const auto runs = folder.path() / "runs";
  const auto refused = [&](std::vector<std::string> more, const char* part) {
    std::vector<std::string> command{"size", MW_RESOURCES "/examples/gemma3-1b-sizing-v5e.json", "--runs-dir",
                                     runs.string()};
    command.insert(command.end(), more.begin(), more.end());
    const Result r = meshwright(command);
    EXPECT_EQ(r.exit_code, 2) << part;
    EXPECT_THAT(r.err, HasSubstr(part));
    EXPECT_EQ(r.out, "");
    const Result listed = meshwright({"runs", "--runs-dir", runs.string(), "--json"});
    EXPECT_THAT(listed.out, testing::Not(HasSubstr("gemma3-1b"))) << part;
  };
  refused({"--set", "mesh.tp=2"}, "mesh uses 2 devices; target has 1");
  refused({"--set", "target.id=v5e-7"}, "target.id");
  refused({"--set", "size.batches=0"}, "size.batches");
  refused({"--set", "size.forward_len=1000000"}, "size.forward_len");
  refused({"--adapter", "/tmp"}, "--adapter");
}

TEST(Size, RunsExperimentsOfKindSize) {
  const Project p;
  const Result r = meshwright(p.command("run", with_size({"--set", "kind=size", "--set", "size.workloads=rollout"})));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  std::vector<int> batches;
  for (const Json& e : lines(r.out))
    if (e["event"] == "point") {
      EXPECT_EQ(e["kind"], "size");
      batches.push_back(e["values"]["batch"]);
    }
  EXPECT_EQ(batches, (std::vector<int>{1, 3}));
  EXPECT_EQ(lines(r.out).back()["state"], "done");
  const Result resumed = meshwright({"run", "--resume", "run-1", "--runs-dir", p.runs.string()});
  EXPECT_EQ(resumed.exit_code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("no checkpoints"));
}

TEST(Size, CtrlCKeepsFinishedPoints) {
  const Project p;
  std::vector<std::string> command = p.command("size", with_size({"--set", "size.batches=1,2000"}));
  std::erase(command, "--json");
  const Result r = meshwright(command, [](pid_t child, const std::string& line) {
    if (line.find("rollout") != std::string::npos) ::kill(child, SIGINT);
  });
  EXPECT_EQ(r.exit_code, 130) << r.err;
  EXPECT_THAT(r.out, testing::Not(HasSubstr("forward")));
}

TEST(Size, RejectsBadInput) {
  const Project p;
  const auto refused = [&](std::vector<std::string> more, const char* place) {
    const Result r = meshwright(p.command("size", std::move(more)));
    EXPECT_EQ(r.exit_code, 2) << place;
    EXPECT_THAT(r.err, HasSubstr(place));
    EXPECT_EQ(r.out, "");
  };
  refused({"--set", "size.batches=1,x"}, "size.batches");
  refused({"--set", "size.batches=0"}, "size.batches");
  refused({"--set", "size.batches=[]"}, "size.batches");
  refused({"--set", "size.workloads=walk"}, "size.workloads");
  refused({"--set", "size.new_tokens=100000"}, "context");
  refused({"--set", "model.path=", "--set", "model.id=gemma3-270m", "--set", "model.init=load"}, "model.init=random");
}

}  // namespace
}  // namespace mw::test
