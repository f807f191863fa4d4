// SPDX-License-Identifier: Apache-2.0
// Reading whole files and writing them atomically. Errors are mw::Error naming the path. Any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mw {

inline constexpr std::uint64_t kMaxTextFile = 4ull << 30;  // larger "text" is a mistake, not an input

// What is there, as far as can be told: a name too long or a folder that may not be looked into is "no", never an
// exception; opening it says why.
bool path_exists(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_missing_or_empty(const std::filesystem::path& folder);  // not there, or empty: what may be written to

std::string read_file(const std::filesystem::path& file, std::uint64_t max_bytes = kMaxTextFile);

// Writes beside the target, fsyncs, renames over it and fsyncs the folder: after a crash the old or the new
// content is there, never a part. Creates missing parent folders.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);

void make_executable(const std::filesystem::path& file);    // for everyone who may read it
bool make_new_folder(const std::filesystem::path& folder);  // false: the name is taken
void make_folders(const std::filesystem::path& folder);     // with its parents; one that is there is fine
void copy_atomically(const std::filesystem::path& from, const std::filesystem::path& to);  // replaces `to`
// With everything below; links are removed, never followed. False: something could not be removed (errno says why).
bool remove_tree(const std::filesystem::path& path) noexcept;

// Makes `folder` appear whole: fill the returned temporary sibling, then commit() swaps it into place
// (replacing an older one). Destroyed uncommitted, it removes the temporary folder.
class StagedFolder {
 public:
  explicit StagedFolder(std::filesystem::path target);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  const std::filesystem::path& path() const { return staging_; }
  void commit();

 private:
  std::filesystem::path target_, staging_;
  int fd_ = -1;  // holds the lock that marks the temporary folder as in use
};

}  // namespace mw
