// SPDX-License-Identifier: GPL-3.0-or-later
// The installed program: it finds its files wherever it lies, and its completions and manual page know every command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/experiment/parameters.h"
#include "tests/base/scratch.h"
#include "tests/cli/process.h"

namespace mw::test {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

struct ShellOutput {
  int exit_code = -1;
  std::string out;  // both streams
};

ShellOutput in_shell(const std::string& command) {
  ShellOutput result;
  std::FILE* pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
  std::array<char, 4096> bytes{};
  while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) result.out.append(bytes.data(), n);
  result.exit_code = WEXITSTATUS(::pclose(pipe));
  return result;
}

// The program and its files in a folder of their own, as an installation has them.
class Installed : public testing::Test {
 protected:
  Installed() {
    fs::create_directories(prefix_ / "bin");
    fs::create_directories(prefix_ / "share");
    fs::create_hard_link(MW_BINARY, prefix_ / "bin/meshwright", no_link_);
    if (no_link_) fs::copy_file(MW_BINARY, prefix_ / "bin/meshwright");
    fs::copy(MW_RESOURCES, prefix_ / "share/meshwright", fs::copy_options::recursive);
  }
  ShellOutput run(const std::string& arguments) const {
    return in_shell("env MESHWRIGHT_RUNS='" + (scratch_.path() / "runs").string() + "' '" +
                    (prefix_ / "bin/meshwright").string() + "' " + arguments);
  }
  const Scratch scratch_;
  std::error_code no_link_;
  const fs::path prefix_ = scratch_.path() / "prefix";
};

TEST_F(Installed, ReadsTheFilesBesideIt) {
  write_file_atomically(prefix_ / "share/meshwright/hardware/prices.json", "{");
  const ShellOutput broken =
      run("plan '" + (prefix_ / "share/meshwright/examples/paper-train-v5p-8.json").string() + "'");
  EXPECT_NE(broken.exit_code, 0);
  EXPECT_THAT(broken.out, HasSubstr((prefix_ / "share/meshwright/hardware/prices.json").string()));
}

TEST_F(Installed, SaysWhatIsMissingWithoutThem) {
  fs::remove_all(prefix_ / "share");
  const ShellOutput lost = run("plan x.json");
  EXPECT_NE(lost.exit_code, 0);
  EXPECT_THAT(run("export " MW_RESOURCES "/examples/tiny-lora.json --recipe trl-fsdp --out " +
                  (scratch_.path() / "out").string())
                  .out,
              HasSubstr("share/meshwright"));
  EXPECT_EQ(run("--version").exit_code, 0) << "needs no files";
}

std::vector<std::string> commands() {
  std::vector<std::string> names;
  const std::string help = meshwright({"--help"}).out;
  for (size_t at = help.find("\nDesign:"); (at = help.find("\n  ", at)) != std::string::npos; ++at)
    if (help[at + 3] != ' ') names.push_back(help.substr(at + 3, help.find(' ', at + 3) - at - 3));
  return names;
}

TEST(Help, GroupsTheSubcommandsByJob) {
  const std::string help = meshwright({"--help"}).out;
  size_t at = 0;
  for (const char* heading : {"\nDesign:\n", "\nTrain:\n", "\nServe:\n", "\nCompare:\n", "\nFiles:\n"}) {
    const size_t found = help.find(heading, at);
    ASSERT_NE(found, std::string::npos) << heading;
    at = found;
  }
  EXPECT_EQ(help.find("Subcommands:"), std::string::npos) << "one has no heading";
}

TEST(Completions, KnowEveryCommandAndKey) {
  ASSERT_GT(commands().size(), 25u);
  for (const char* name : {"bash", "zsh", "fish"}) {
    const Result script = meshwright({"completion", name});
    EXPECT_EQ(script.exit_code, 0) << script.err;
    for (const std::string& command : commands()) EXPECT_THAT(script.out, HasSubstr(command)) << name;
    for (const experiment::Parameter& p : experiment::parameters())
      EXPECT_TRUE(p.key.ends_with('*') || script.out.find(p.key) != std::string::npos) << name << ": " << p.key;
  }
  const Result other = meshwright({"completion", "tcsh"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.out, "");
  EXPECT_EQ(
      other.err,
      "meshwright: shell: there are no completions for this shell (found: tcsh; expected: bash, zsh or fish). Fix: run "
      "meshwright completion with one of these names\n");
}

TEST(Completions, CompleteInBash) {
  const Scratch scratch;
  write_file_atomically(scratch.path() / "script", meshwright({"completion", "bash"}).out);
  const auto completed = [&](const std::string& words) {
    return in_shell("bash -c 'source " + (scratch.path() / "script").string() +
                    "; compopt() { :; }; COMP_WORDS=(meshwright " + words +
                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _meshwright; echo ${COMPREPLY[*]}'")
        .out;
  };
  EXPECT_EQ(completed("sea"), "search\n");
  EXPECT_EQ(completed("plan --tar"), "--target\n");
  EXPECT_EQ(completed("run x.json --set train.ste"), "train.steps=\n");
  EXPECT_EQ(completed("sweep --backend e"), "engine\n");
}

TEST(ManPage, DescribesEveryCommandWithItsOptions) {
  const Result page = meshwright({"man-page"});
  ASSERT_EQ(page.exit_code, 0) << page.err;
  EXPECT_EQ(page.out.find(".\\\""), 0u);
  EXPECT_THAT(page.out, HasSubstr(".TH MESHWRIGHT 1"));
  for (const std::string& command : commands()) {
    std::string escaped = command;
    for (size_t at = escaped.find('-'); at != std::string::npos; at = escaped.find('-', at + 2))
      escaped.insert(at, "\\");
    EXPECT_THAT(page.out, HasSubstr(".SS " + escaped + "\n"));
  }
  EXPECT_THAT(page.out, HasSubstr("\\-\\-allow\\-unchecked"));
}

}  // namespace
}  // namespace mw::test
