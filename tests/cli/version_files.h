// SPDX-License-Identifier: GPL-3.0-or-later
// The files that an earlier version wrote, as a project of a test.
#pragma once
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {

// A copy of tests/fixtures/FOLDER, whose runs belong to the copy.
class FilesOfVersion : public testing::Test {
 protected:
  explicit FilesOfVersion(const char* written) {
    std::filesystem::copy(std::filesystem::path(MW_FIXTURES) / written, folder,
                          std::filesystem::copy_options::recursive);
    // The store contains absolute paths, so they are changed to those of the copy.
    sqlite3* db = nullptr;
    sqlite3_open((folder / "runs/runs.sqlite").c_str(), &db);
    const std::string sql = "UPDATE runs SET experiment_folder='" + folder.string() + "'";
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
    for (const auto& entry : std::filesystem::directory_iterator(folder / "runs"))
      if (const std::filesystem::path tuning = entry.path() / "tune.json"; std::filesystem::exists(tuning)) {
        Json json = parse_json(read_file(tuning), "tune.json");
        json["folder"] = folder.string();
        write_file_atomically(tuning, json.dump());
      }
  }

  Json answer(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Result result = meshwright(arguments);
    EXPECT_EQ(result.exit_code, 0) << testing::PrintToString(arguments) << "\n" << result.err;
    return result.exit_code == 0 ? parse_json(result.out, arguments[0]) : Json();
  }
  std::vector<std::string> in_store(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--runs-dir", (folder / "runs").string()});
    return arguments;
  }

  const Scratch scratch;
  const std::filesystem::path folder = scratch.path() / "files";
};

}  // namespace mw::test
