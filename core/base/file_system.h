// SPDX-License-Identifier: Apache-2.0
// All writes to disk, including SQLite's, go through one FileSystem; tests substitute one that fails on purpose.
// Members behave like the system calls of the same name: they return -1 and set errno. Thread-safe.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <filesystem>

namespace mw {

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t write(int fd, const void* bytes, size_t count);
  virtual ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset);
  virtual int ftruncate(int fd, off_t size);
  virtual int fsync(int fd);
  virtual int chmod(const char* path, mode_t mode);
  virtual int mkdir(const char* path, mode_t mode);
  virtual int rmdir(const char* path);
  virtual int unlink(const char* path);
  virtual int rename(const char* from, const char* to);
  virtual int exchange(const char* a, const char* b);  // renameat2(2) with RENAME_EXCHANGE: swaps two paths atomically
};

FileSystem& file_system();  // the current one; the operating system's by default

// Makes `replacement` current and returns the previous one; null restores the default. The caller owns `replacement`
// and must not replace it while other threads write.
FileSystem* replace_file_system(FileSystem* replacement);

// From this call on, files below `folder` are created with mode 0600 and folders with 0700. Other paths follow the
// umask.
void keep_private(const std::filesystem::path& folder);

}  // namespace mw
