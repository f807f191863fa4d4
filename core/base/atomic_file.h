// SPDX-License-Identifier: Apache-2.0
// Files written in pieces through file_system(). Errors name the target. Use each object on one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/files.h"

namespace mw {

// Temporary names of unfinished output: "<name>.part-<pid>" while a file or folder is written, and "<name>.old-<pid>"
// while a folder is replaced on a file system that cannot swap two. A killed process leaves them behind. A part is
// stale if no process has this id and nothing holds its lock (the id of a writer in another container is unknown here).
std::filesystem::path part_path(const std::filesystem::path& target);  // the part of this process
void lock_part(int descriptor);                                        // until the descriptor is closed
void sync_folder_of(const std::filesystem::path& target);              // makes a rename in this folder durable

// Remove the stale parts of one target, or of all targets directly in a folder. An ".old-" folder whose target is
// missing is renamed back to it. Failures to remove are ignored.
void remove_stale_parts_of(const std::filesystem::path& target) noexcept;
void remove_stale_parts_in(const std::filesystem::path& folder) noexcept;

// Waits up to five seconds for the lock "<name>.lock" beside a file, whose folder it makes, and holds it: from reading the file until it
// is written anew, so that no change of another process or thread is lost. Throws if another holds it for
// longer. Excludes nobody on file systems without locks.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

// A file descriptor opened for writing. Creates the file; must_be_new throws if it exists.
class OutputFile {
 public:
  enum class Create { replace, must_be_new };
  OutputFile(const std::filesystem::path& file, Create create);  // the folder must exist
  // Errors name `shown`, e.g. the final name of a temporary file.
  OutputFile(const std::filesystem::path& file, Create create, std::filesystem::path shown);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);  // on any thread
  void resize(std::uint64_t bytes);
  // Starts to write a range to disk, to shorten a later sync(), which reports errors.
  void start_writeback(std::uint64_t offset, std::uint64_t bytes) const;
  void sync();
  int descriptor() const { return fd_; }

 private:
  std::filesystem::path shown_;
  int fd_ = -1;
};

// A file that replaces `target` completely or not at all: writes "<name>.part-<pid>", which commit() renames.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);  // the folder must exist
  ~AtomicFile();                                      // removes the temporary file unless committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void commit();  // fsync, rename over the target, fsync the folder

 private:
  void flush();
  void write_through(std::span<const std::byte> bytes);

  std::filesystem::path target_, part_;
  OutputFile file_;
  std::vector<std::byte> buffer_;  // joins small writes
  std::uint64_t written_ = 0;
  bool committed_ = false;
};

}  // namespace mw
