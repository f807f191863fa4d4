// SPDX-License-Identifier: GPL-3.0-or-later
// Help and progress of the shell scripts.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/base/scratch.h"

namespace mw::test {
namespace {
namespace fs = std::filesystem;

struct Shell {
  int exit_code = -1;
  std::string out;  // both streams
};

Shell bash(const std::string& script) {
  Shell result;
  std::FILE* pipe = ::popen(("bash -c '" + script + "' 2>&1 </dev/null").c_str(), "r");
  std::array<char, 4096> bytes{};
  while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) result.out.append(bytes.data(), n);
  result.exit_code = WEXITSTATUS(::pclose(pipe));
  return result;
}

class Scripts : public testing::Test {
 protected:
  Scripts() {
    fs::create_directories(folder);
    fs::copy(fs::path(MW_SOURCE_DIR) / "scripts", folder / "scripts", fs::copy_options::recursive);
  }
  std::string script(const std::string& name) const { return (folder / "scripts" / name).string(); }
  const Scratch scratch;
  const fs::path folder = scratch.path() / "copy";
};

TEST_F(Scripts, PrintsHelpWithoutInstallingOrBuilding) {
  for (const char* name :
       {"peers", "arm64", "test", "calibrate", "check-clients", "check-recipes", "load-test", "fuzz"}) {
    const Shell help = bash(script(name) + ".sh --help");
    EXPECT_EQ(help.exit_code, 0) << name << "\n" << help.out;
    EXPECT_GT(help.out.size(), 100u) << name;
    EXPECT_EQ(help.out.find("Installing:"), std::string::npos) << help.out;
    EXPECT_EQ(help.out.find("source \""), std::string::npos) << "prints code: " << help.out;
    EXPECT_FALSE(fs::exists(folder / "build")) << name;
  }
}

TEST_F(Scripts, BuildShowsStepsAndTimeLeft) {
  const Shell shell =
      bash("source " + script("common.sh") + "; for i in $(seq 0 40); do echo \"[$i/40] Building\"; done | progress " +
           (folder / "log").string());
  EXPECT_EQ(shell.exit_code, 0);
  EXPECT_EQ(shell.out.find("Building: 40 steps, "), 0u) << shell.out;
  EXPECT_NE(shell.out.find("20 of 40 steps, less than a minute left"), std::string::npos) << shell.out;
  EXPECT_EQ(std::count(shell.out.begin(), shell.out.end(), '\n'), 11) << shell.out;
  EXPECT_EQ(bash("wc -l <" + (folder / "log").string()).out, "41\n");
}

// Runs build() in a configured folder, with a ninja that prints `lines` and ends with `end`.
Shell build_with(const std::string& common, const std::string& lines, const std::string& end) {
  return bash("source " + common + "; mkdir -p $root/build/x; touch $root/build/x/build.ninja; ninja() { [ \"$3\" = -t ] && return; printf \"" +
              lines + "\"; " + end + "; }; build x y");
}

TEST_F(Scripts, FailedBuildPrintsItsOutput) {
  const Shell shell = build_with(script("common.sh"), "[1/1] Building\\nthe reason\\n", "false");
  EXPECT_EQ(shell.exit_code, 1);
  EXPECT_NE(shell.out.find("the reason"), std::string::npos) << shell.out;
}

TEST_F(Scripts, BuildWithNothingToDoIsQuiet) {
  const Shell shell = build_with(
      script("common.sh"),
      "[0/2] Re-checking globbed directories...\\n[1/2] Re-running CMake...\\nninja: no work to do.\\n", "true");
  EXPECT_EQ(shell.exit_code, 0);
  EXPECT_EQ(shell.out, "");
}

}  // namespace
}  // namespace mw::test
