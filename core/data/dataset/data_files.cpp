// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/data_files.h"

#include <glob.h>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw::data {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_pattern(const fs::path& pattern, const std::string& message, const std::string& expected) {
  throw Error({.id = "DATA-FILES",
               .message = message,
               .file = pattern.string(),
               .place = "data",
               .expected = expected,
               .fix = "list the files with ls, and correct the pattern"});
}

std::vector<fs::path> files_of_pattern(const fs::path& pattern) {
  if (!is_pattern(pattern)) return {pattern};
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_BRACE, nullptr, &found);
  std::vector<fs::path> files;
  if (code == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.empty()) refuse_pattern(pattern, "no file matches the pattern", "at least one file");
  if (files.size() > kMostFiles)
    refuse_pattern(pattern, "too many files match the pattern", "at most " + std::to_string(kMostFiles));
  return files;
}

// `number`: that of the pattern's first file.
void add_files(std::vector<NumberedFile>& files, const fs::path& pattern, FileNumber number) {
  for (fs::path& path : files_of_pattern(pattern)) {
    files.push_back({number, std::move(path)});
    ++number.index;
  }
}

}  // namespace

bool is_pattern(const fs::path& path) {
  return path.string().find_first_of("*?[{") != std::string::npos && !path_exists(path);
}

std::vector<NumberedFile> data_files(const DatasetOptions& options) {
  std::vector<NumberedFile> files;
  add_files(files, options.path, {});
  if (!options.eval_path.empty()) add_files(files, options.eval_path, {.held_out = true});
  return files;
}

fs::path data_file(const DatasetOptions& options, FileNumber number) try {
  for (NumberedFile& file : data_files(options))
    if (file.number == number) return std::move(file.path);
  return {};
} catch (const Error&) {
  return {};
}

}  // namespace mw::data
