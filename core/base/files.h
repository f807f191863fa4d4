// SPDX-License-Identifier: Apache-2.0
// Reads whole files and writes them atomically. Errors name the path. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mw {

inline constexpr std::uint64_t kMaxTextFile = 4ull << 30;

// $XDG_CACHE_HOME, else ~/.cache; empty without either.
std::filesystem::path user_cache_folder();

// These never throw: a path that cannot be examined (name too long, no permission) counts as missing.
bool path_exists(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_missing_or_empty(const std::filesystem::path& folder);  // an output folder may be created here

std::string read_file(const std::filesystem::path& file, std::uint64_t max_bytes = kMaxTextFile);

// Writes a sibling file, syncs it, renames it over `file` and syncs the folder: after a crash the file has the old or
// the new content, never a part of it. Creates missing parent folders.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);

void make_executable(const std::filesystem::path& file);    // for all users who may read it
bool make_new_folder(const std::filesystem::path& folder);  // false if the path exists
void make_folders(const std::filesystem::path& folder);     // with missing parents, like mkdir -p
void copy_atomically(const std::filesystem::path& from, const std::filesystem::path& to);  // replaces `to`
// Removes `path` recursively without following links. False (with errno) if something could not be removed.
bool remove_tree(const std::filesystem::path& path) noexcept;

// Writes a folder atomically: fill the temporary sibling path(), then commit() moves it to `target` and replaces an
// older folder there. The destructor removes the temporary folder if commit() was not called.
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
  int fd_ = -1;  // holds the lock on the temporary folder (lock_part)
};

}  // namespace mw
