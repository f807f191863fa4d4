// SPDX-License-Identifier: Apache-2.0
// Every change on disk, SQLite's included, goes through one FileSystem, so that tests can make any of them fail.
// The members are the system calls of the same names: they return -1 and set errno. Any thread.
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

FileSystem& file_system();  // the one in use; the system's own unless replaced

// Replaces the file system in use and returns the one before; null restores the system's own. The caller keeps
// `replacement` alive while it is in use, and replaces it only while no other thread writes.
FileSystem* replace_file_system(FileSystem* replacement);

// From now on this process creates files below `folder` with mode 0600 and folders with 0700. Other paths follow the
// umask.
void keep_private(const std::filesystem::path& folder);

}  // namespace mw
