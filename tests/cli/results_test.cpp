// SPDX-License-Identifier: GPL-3.0-or-later
// import, audit, compare and inspect of results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/files.h"
#include "tests/base/scratch.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Texts = std::vector<std::string>;

std::string fixture(const char* name) {
  return (fs::path(MW_FIXTURES) / "bench" / name).string();
}

struct Folder {
  std::string operator/(const char* name) const { return (scratch / name).string(); }
  Scratch scratch;
};

TEST(Results, ImportedRunsAreListedAndCompared) {
  const Folder folder;
  const Texts store{"--runs-dir", folder / "runs"};
  const auto command = [&](Texts words) {
    words.insert(words.end(), store.begin(), store.end());
    return meshwright(words);
  };
  const Result imported =
      command({"import", fixture("vllm_appended.json"), fixture("guidellm_constant.json"), "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const Json ids = parse_json(imported.out, "import")["runs"];
  ASSERT_EQ(ids.size(), 3u);
  const Json rows = parse_json(command({"runs", "--json"}).out, "runs")["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["source"], "imported");
  EXPECT_EQ(rows[0]["state"], "done");

  const Result compare = command({"compare", ids[0], ids[1], "--json"});
  ASSERT_EQ(compare.exit_code, 0) << compare.err;
  const Json table = parse_json(compare.out, "compare");
  EXPECT_EQ(table["verdict"], "confounded");  // six requests per point
  EXPECT_FALSE(table["warnings"].empty());
  bool tp = false;
  for (const Json& row : table["rows"]) tp = tp || (row["key"] == "tp" && row["values"] == Json({"1", "2"}));
  EXPECT_TRUE(tp);
  for (const char* name : {"t.csv", "t.md", "t.tex", "t.json"}) {
    ASSERT_EQ(command({"compare", ids[0], ids[1], fixture("vllm_plain.json"), "--out", folder / name}).exit_code, 0);
    EXPECT_GT(fs::file_size(folder.scratch / name), 200u) << name;
  }
  EXPECT_THAT(read_file(folder.scratch / "t.tex"), HasSubstr("\\begin{tabular}{lrrr}"));
  const Result png = command({"compare", ids[0], ids[1], "--out", folder / "t.png"});
  if (png.exit_code == 0)
    EXPECT_EQ(read_file(folder.scratch / "t.png").substr(1, 3), "PNG");
  else
    EXPECT_THAT(png.err, HasSubstr("no window"));  // a build without a window
  const Result turned = command({"compare", ids[0], ids[1], "--baseline", ids[1], "--json"});
  EXPECT_EQ(parse_json(turned.out, "compare")["names"][0], table["names"][1]);

  const Result unknown = command({"compare", ids[0], "run-99"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("run-99"));
  EXPECT_EQ(command({"compare", ids[0]}).exit_code, 2);
  EXPECT_EQ(command({"compare", ids[0], ids[1], "--out", folder / "t.doc"}).exit_code, 2);
}

TEST(Results, RunsAreReportedBundledAndImportedElsewhere) {
  const Folder folder;
  const auto command = [&](Texts words, const char* runs) {
    for (const std::string& word : Texts{"--runs-dir", folder / runs, "--json"}) words.push_back(word);
    const Result result = meshwright(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return parse_json(result.out, words[0]);
  };
  const Json ids = command({"import", fixture("aiperf_0.10.0.json"), fixture("sglang.jsonl")}, "runs")["runs"];
  ASSERT_EQ(ids.size(), 3u);
  const Json report = command({"report", ids[0], ids[1], "--out", folder / "r.html"}, "runs");
  EXPECT_EQ(report["bytes"], fs::file_size(folder.scratch / "r.html"));
  EXPECT_THAT(read_file(folder.scratch / "r.html"), HasSubstr("TTFT by load"));
  const std::string bundle = folder / "b.meshwright.tar.zst";
  EXPECT_EQ(command({"bundle", ids[1], ids[0], "--out", bundle}, "runs")["runs"].size(), 2u);
  const Result inspected = meshwright({"inspect", bundle, "--json"});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  const Json contents = parse_json(inspected.out, "inspect");
  EXPECT_EQ(contents["kind"], "bundle");
  EXPECT_EQ(contents["runs"][0]["name"], command({"runs"}, "runs")["rows"][1]["name"]);
  EXPECT_GT(contents["runs"][1]["events"], 1);
  EXPECT_EQ(contents["checkpoint_files"], 0);
  write_file_atomically(folder.scratch / "cut.meshwright.tar.zst", read_file(bundle).substr(0, 300));
  EXPECT_EQ(meshwright({"inspect", folder / "cut.meshwright.tar.zst"}).exit_code, 2);
  EXPECT_EQ(command({"import", bundle}, "elsewhere")["runs"].size(), 2u);
  EXPECT_EQ(command({"runs"}, "elsewhere")["rows"][0]["name"], command({"runs"}, "runs")["rows"][2]["name"]);
  EXPECT_EQ(meshwright({"report", ids[0], "--out", folder / "r.pdf", "--runs-dir", folder / "runs"}).exit_code, 2);
  EXPECT_EQ(meshwright({"bundle", ids[0], "--out", folder / "b.zip", "--runs-dir", folder / "runs"}).exit_code, 2);
}

TEST(Results, RejectsUnknownFileWithoutCreatingARun) {
  const Folder folder;
  write_file_atomically(folder.scratch / "cut.json", read_file(fixture("vllm_plain.json")).substr(0, 700));
  const Result r =
      meshwright({"import", fixture("vllm_plain.json"), folder / "cut.json", "--runs-dir", folder / "runs"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("cut.json"));
  EXPECT_THAT(r.err, HasSubstr("line "));
  const Result rows = meshwright({"runs", "--json", "--runs-dir", folder / "runs"});
  EXPECT_TRUE(parse_json(rows.out, "runs")["rows"].empty());
}

TEST(Results, AuditReportsImpossibleValues) {
  const Folder folder;
  write_file_atomically(folder.scratch / "cells.csv",
                        "name,qps,input_len,output_len,num_prompts,completed,ttft\n"
                        "tpu,4,8192,512,30,30,1013\ntpu,4,15360,512,30,30,62\n");
  const Texts columns{"--column", "request_rate=qps", "--column", "median_ttft_ms=ttft"};
  Texts words{"audit", folder / "cells.csv", "--target", "v6e-8", "--model", "gemma4-31b", "--json"};
  words.insert(words.end(), columns.begin(), columns.end());
  const Result r = meshwright(words);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  int impossible = 0;
  const Json answer = parse_json(r.out, "audit");
  for (const Json& f : answer["findings"]) {
    if (f["verdict"] != "impossible") continue;
    ++impossible;
    EXPECT_EQ(f["point"], 1);
    EXPECT_EQ(f["metric"], "median_ttft_ms");
    EXPECT_EQ(f["value"], 62);
    EXPECT_NEAR(f["floor"].get<double>(), 130, 10);
  }
  EXPECT_EQ(impossible, 1);
  // The same results as a run of the store.
  const std::string store = folder / "runs";
  Texts import{"import", folder / "cells.csv", "--runs-dir", store};
  import.insert(import.end(), columns.begin(), columns.end());
  ASSERT_EQ(meshwright(import).exit_code, 0);
  const Result of_run =
      meshwright({"audit", "run-1", "--runs-dir", store, "--target", "v6e-8", "--model", "gemma4-31b", "--json"});
  ASSERT_EQ(of_run.exit_code, 0) << of_run.err;
  const Json again = parse_json(of_run.out, "audit");
  EXPECT_EQ(std::count_if(again["findings"].begin(), again["findings"].end(),
                          [](const Json& f) { return f["verdict"] == "impossible"; }),
            1);
  const Result unknown = meshwright({"audit", "run-9", "--runs-dir", store});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no run or file has this name"));
  words[3] = "v6e-7";
  EXPECT_EQ(meshwright(words).exit_code, 2);
  EXPECT_EQ(meshwright({"audit", fixture("VERSIONS.json")}).exit_code, 2);
}

TEST(Results, InspectNamesTheToolOfAResult) {
  const Result r = meshwright({"inspect", fixture("guidellm_constant.json"), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json json = parse_json(r.out, "inspect");
  EXPECT_EQ(json["kind"], "result");
  EXPECT_EQ(json["tool"], "GuideLLM");
  EXPECT_EQ(json["sets"][0]["points"][0]["completed"], 6);
}

}  // namespace
}  // namespace mw::test
