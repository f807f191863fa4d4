// SPDX-License-Identifier: Apache-2.0
// Reads whole files and writes them atomically. Errors name the path. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mw {

// Opens and reads input files given by the user: regular files within a size limit, UTF-8. All readers of foreign files
// use it, so that a device, a named pipe or a huge file is an error instead of a hang or an allocation failure.
// Thread-safe.

inline constexpr std::uint64_t kMaxJsonFile = 64ull << 20;  // experiments, configurations, indices
inline constexpr std::uint64_t kMaxTokenizerFile = 256ull << 20;

// `inherited` accepts pipes that the process was started with: /dev/stdin, or /dev/fd/N of `<(command)`.
enum class Pipes { refuse, inherited };

// Returns a file descriptor, which the caller closes. Throws SYSTEM if the file cannot be opened, FILE-KIND for a
// folder, device, socket or named pipe, and FILE-LFS for a Git LFS pointer.
int open_input(const std::filesystem::path& file, Pipes pipes = Pipes::refuse);

// The first bytes of a file, to detect its format; at most `bytes`, empty if it cannot be read.
std::string read_beginning(const std::filesystem::path& file, size_t bytes);

// Contents of a UTF-8 file of at most `max_bytes`, without the byte order mark.
std::string read_text(const std::filesystem::path& file, std::uint64_t max_bytes);

// Skips a UTF-8 byte order mark. Throws TEXT-ENCODING, naming `source`, for a UTF-16 or UTF-32 byte order mark.
std::string_view without_byte_order_mark(std::string_view text, const std::string& source);

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
