// SPDX-License-Identifier: GPL-3.0-or-later
// Special files, wrong files, and content that attacks terminals and spreadsheets: one clear error with exit code 2,
// and no control character in the output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void expect_bad_input(const std::vector<std::string>& command, const testing::Matcher<const std::string&>& message) {
  const Result r = meshwright(command);
  EXPECT_EQ(r.exit_code, 2) << testing::PrintToString(command) << "\n" << r.err;
  EXPECT_THAT(r.err, message) << testing::PrintToString(command);
}

std::string fixture_path(const std::string& path) {
  return (fs::path(MW_FIXTURES) / path).string();
}

TEST(HostileInput, RejectsSpecialFilesImmediately) {
  const Project p;
  const std::string pipe = p.folder / "pipe", folder = p.folder;
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string runs = p.runs;
  for (const std::string& file : {pipe, std::string("/dev/zero")}) {
    expect_bad_input({"plan", file}, HasSubstr("not a regular file"));
    expect_bad_input({"inspect", file}, HasSubstr("not a regular file"));
    expect_bad_input({"import", file, "--runs-dir", runs}, HasSubstr("not a regular file"));
    expect_bad_input(p.command("run", {"--set", "data.path=" + file}), HasSubstr("not a regular file"));
  }
  expect_bad_input({"plan", folder}, HasSubstr("a folder"));
  expect_bad_input(p.command("run", {"--set", "data.path=" + folder}), HasSubstr("a folder"));
}

TEST(HostileInput, RejectsEmptyRunsFolder) {
  expect_bad_input({"runs", "--runs-dir", ""}, HasSubstr("--runs-dir"));
}

TEST(HostileInput, MessagesNameTheMistakeAndTheFix) {
  const Project p;
  expect_bad_input({"plann", "x"}, HasSubstr("unknown command 'plann'; did you mean 'plan'?"));
  expect_bad_input(p.command("plan", {"--set", "train.learning_rate=nan"}),
                   HasSubstr("got 'nan'; expected a number from 0 to 10"));
  expect_bad_input({"plan", p.scratch.put("empty.json", "").string()}, HasSubstr("the file is empty"));
  expect_bad_input({"inspect", fixture_path("peft_adapter/adapter_config.json")},
                   HasSubstr("this is a PEFT configuration; inspect its folder"));
  const std::string pointer =
      p.scratch.put("m.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 9\n").string();
  expect_bad_input({"inspect", pointer}, AllOf(HasSubstr("Git LFS pointer"), HasSubstr("git lfs pull")));
  for (const char* command : {"compare", "replay", "audit"})
    expect_bad_input({command, "nobody", "--runs-dir", p.runs.string()}, HasSubstr("no run or file has this name"));
}

TEST(HostileInput, RejectsParquetDatasetAndSuggestsConversion) {
  const Project p;
  const std::string file = p.scratch.put("it's rows.parquet", "PAR1").string();
  const std::string folder = fs::path(file).parent_path().string();
  const auto names =
      HasSubstr("lines=True)\" '" + folder + "/it'\\''s rows.parquet' '" + folder + "/it'\\''s rows.jsonl'");
  expect_bad_input({"inspect", file}, AllOf(HasSubstr(".parquet"), names));
  expect_bad_input(p.command("run", {"--set", "data.path=" + file}), names);
  const std::string compressed = p.scratch.put("rows.parquet.gz", "PAR1").string();
  expect_bad_input({"inspect", compressed},
                   AllOf(HasSubstr("decompress it, then convert"),
                         HasSubstr("'" + folder + "/rows.parquet' '" + folder + "/rows.jsonl'")));
}

TEST(HostileInput, ImportsResultsWithByteOrderMark) {
  const Project p;
  const std::string file =
      p.scratch.put("bom.json", "\xEF\xBB\xBF" + read_file(fixture_path("bench/vllm_plain.json"))).string();
  const Result r = meshwright({"import", file, "--runs-dir", p.runs.string()});
  EXPECT_EQ(r.exit_code, 0) << r.err;
}

TEST(HostileInput, RejectsLogsWithoutScalarsAndListsTheirContents) {
  const Project p;
  // Version 0.18 writes every update of the summary; without the history, nothing else remains.
  const std::string header = read_file(fixture_path("logs/wandb_versions/0.16.6.wandb")).substr(0, 7);
  const std::string empty = p.scratch.put("w/run-1.wandb", header).string();
  expect_bad_input({"import", empty, "--runs-dir", p.runs.string()}, HasSubstr("no scalar values"));
  expect_bad_input({"import", fixture_path("logs/histograms"), "--runs-dir", p.runs.string()},
                   AllOf(HasSubstr("no scalar values"), HasSubstr("1 histograms (weights)")));
}

TEST(HostileInput, EscapesControlCharactersInNames) {
  const Project p;
  Json result = read_json(fixture_path("bench/vllm_plain.json"));
  result["model_id"] =
      "evil\x1b[2J\x1b]0;owned\x07 \xC2\x9B"
      "31m\x7f\xE2\x80\xAEname";
  const std::string file = p.scratch.put("evil.json", result.dump()).string(), runs = p.runs;
  const auto clean = [](const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return false;
      if (c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) return false;
    }
    return text.find("\xE2\x80\xAE") == std::string::npos;
  };
  for (const std::vector<std::string>& command : {std::vector<std::string>{"import", file, "--runs-dir", runs},
                                                  {"runs", "--runs-dir", runs},
                                                  {"runs", "--runs-dir", runs, "--json"},
                                                  {"compare", "run-1", "--runs-dir", runs},
                                                  {"inspect", file},
                                                  {"inspect", file, "--json"},
                                                  {"plan", "evil\x1b[2J.json"},
                                                  {"audit", file}}) {
    const Result r = meshwright(command);
    EXPECT_TRUE(clean(r.out)) << command[0] << ": " << testing::PrintToString(r.out);
    EXPECT_TRUE(clean(r.err)) << command[0] << ": " << testing::PrintToString(r.err);
  }
  EXPECT_THAT(meshwright({"runs", "--runs-dir", runs}).out, HasSubstr("evil\\x1b[2J"));
  const Result json = meshwright({"runs", "--runs-dir", runs, "--json"});
  EXPECT_THAT(parse_json(json.out, "runs")["rows"][0]["name"].get<std::string>(), HasSubstr("\x1b[2J"))
      << "JSON contains the name unchanged";
}

TEST(HostileInput, DisarmsFormulasInExportedTables) {
  const Project p;
  Json result = read_json(fixture_path("bench/vllm_plain.json"));
  result["model_id"] = "=cmd|' /C calc'!A0";
  const std::string file = p.scratch.put("formula.json", result.dump()).string(), out = p.folder / "out.csv";
  ASSERT_EQ(meshwright({"compare", file, file, "--out", out, "--runs-dir", p.runs.string()}).exit_code, 0);
  const std::string table = read_file(out);
  EXPECT_THAT(table, HasSubstr("'=cmd|"));
  EXPECT_THAT(table, Not(testing::ContainsRegex("(^|,|\n)\"?=")));
}

}  // namespace
}  // namespace mw::test
