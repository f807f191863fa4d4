// SPDX-License-Identifier: GPL-3.0-or-later
// Recipes on several processes and hosts, with the standard library of Python instead of JAX and torch (host_cases.py).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>

#include "core/base/files.h"
#include "core/base/text.h"
#include "tests/store/store_fixture.h"

namespace mw::recipes {
namespace {

namespace fs = std::filesystem;

class RecipeHosts : public testing::TestWithParam<const char*> {};

TEST_P(RecipeHosts, Case) {
  const test::Scratch folder;
  fs::create_directories(folder.path() / "work");
  const fs::path errors = folder.path() / "errors";
  const fs::path cases = fs::path(MW_FIXTURES).parent_path() / "recipes" / "host_cases.py";
  const std::string command = "python3 -B " + shell_quoted(cases.string()) + " " +
                              shell_quoted(MW_RESOURCES "/recipes") + " " + GetParam() + " " +
                              shell_quoted((folder.path() / "work").string()) + " 2> " + shell_quoted(errors.string());
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0) << read_file(errors);
}

INSTANTIATE_TEST_SUITE_P(Cases, RecipeHosts,
                         testing::Values("environment", "one_stream", "lost_process", "lost_first_process",
                                         "broken_process", "unequal_hosts", "late_clock", "missing_coordinator",
                                         "slices", "checkpoints", "refusals", "submitters", "jobset", "disk_that_fills",
                                         "disk_full_while_waiting", "on_hosts"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace mw::recipes
