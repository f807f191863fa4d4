// SPDX-License-Identifier: GPL-3.0-or-later
// `export` writes a recipe folder and protects other folders.
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

TEST(Export, WritesOnlyItsOwnFolder) {
  const Project project;
  const fs::path out = project.folder / "it's a recipe";
  const auto exported = [&](const std::string& kind, const fs::path& to) {
    return meshwright(project.command("export", {"--recipe", kind, "--out", to.string()}));
  };
  const Result made = exported("trl-fsdp", out);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Json said = parse_json(made.out, "export");
  for (const Json& file : said["files"]) EXPECT_TRUE(fs::exists(out / file.get<std::string>())) << file;
  EXPECT_NE(fs::status(out / "run.sh").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(exported("trl-fsdp", out).exit_code, 0);  // again
  write_file_atomically(out / "train.py", "mine");
  const Result changed = exported("trl-fsdp", out);
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("train.py"));
  EXPECT_EQ(read_file(out / "train.py"), "mine");
  EXPECT_EQ(exported("tunix", project.model).exit_code, 2);  // a folder with other files
  EXPECT_EQ(exported("maxtext", project.folder / "no").exit_code, 2);
  EXPECT_FALSE(fs::exists(project.folder / "no"));
}

}  // namespace
}  // namespace mw::test
