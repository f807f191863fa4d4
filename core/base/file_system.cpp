// SPDX-License-Identifier: Apache-2.0
#include "core/base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

namespace mw {
namespace fs = std::filesystem;
namespace {

std::atomic<FileSystem*> replaced = nullptr;

std::mutex private_mutex;
std::vector<fs::path> private_folders;  // absolute, without "." and ".."

fs::path normal(const fs::path& path) {
  std::error_code ec;
  const fs::path absolute = fs::absolute(path, ec).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool is_private(const char* path) {
  const std::lock_guard lock(private_mutex);
  if (private_folders.empty()) return false;
  const fs::path wanted = normal(path);
  return std::any_of(private_folders.begin(), private_folders.end(), [&](const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), wanted.begin(), wanted.end()).first == folder.end();
  });
}

}  // namespace

int FileSystem::open(const char* path, int flags, mode_t mode) {
  const bool owner_only = (flags & O_CREAT) != 0 && is_private(path);
  return ::open(path, flags, owner_only ? mode & 0700 : mode);
}
ssize_t FileSystem::write(int fd, const void* bytes, size_t count) {
  return ::write(fd, bytes, count);
}
ssize_t FileSystem::pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return ::pwrite(fd, bytes, count, offset);
}
int FileSystem::ftruncate(int fd, off_t size) {
  return ::ftruncate(fd, size);
}
int FileSystem::fsync(int fd) {
  return ::fsync(fd);
}
int FileSystem::chmod(const char* path, mode_t mode) {
  return ::chmod(path, mode);
}
int FileSystem::mkdir(const char* path, mode_t mode) {
  return ::mkdir(path, is_private(path) ? mode & 0700 : mode);
}
int FileSystem::rmdir(const char* path) {
  return ::rmdir(path);
}
int FileSystem::unlink(const char* path) {
  return ::unlink(path);
}
int FileSystem::rename(const char* from, const char* to) {
  return std::rename(from, to);
}
int FileSystem::exchange(const char* a, const char* b) {
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

FileSystem& file_system() {
  static FileSystem system;
  FileSystem* other = replaced.load();
  return other ? *other : system;
}

FileSystem* replace_file_system(FileSystem* replacement) {
  return replaced.exchange(replacement);
}

void keep_private(const fs::path& folder) {
  const std::lock_guard lock(private_mutex);
  fs::path path = normal(folder);
  if (std::find(private_folders.begin(), private_folders.end(), path) == private_folders.end())
    private_folders.push_back(std::move(path));
}

}  // namespace mw
