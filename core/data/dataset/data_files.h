// SPDX-License-Identifier: Apache-2.0
// The files of a dataset. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/data/dataset/examples.h"

namespace mw::data {

// Identifies a file of the dataset.
struct FileNumber {
  std::uint16_t index = 0;  // among the files of path, or of eval_path; below kMostFiles
  bool held_out = false;    // a file of eval_path
  bool operator==(const FileNumber&) const = default;
};
inline constexpr size_t kMostFiles = 1 << 15;

struct NumberedFile {
  FileNumber number;
  std::filesystem::path path;
};

// Whether the path names nothing and contains * ? [ or {.
bool is_pattern(const std::filesystem::path& path);

// The files of options.path, then those of options.eval_path. A pattern is expanded as in a shell: its files are in
// the order of their names, alternatives {a,b} in the order given. Any other path is returned as it is, so that reading
// it reports the error. Throws DATA-FILES for a pattern that no file
// matches.
std::vector<NumberedFile> data_files(const DatasetOptions& options);

// The path of one of these files; empty if it does not exist any more.
std::filesystem::path data_file(const DatasetOptions& options, FileNumber number);

}  // namespace mw::data
