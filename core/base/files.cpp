// SPDX-License-Identifier: Apache-2.0
#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace mw {
namespace fs = std::filesystem;
namespace {

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, mode_t mode = 0644)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

void write_all(int fd, std::string_view content, const fs::path& file) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw system_error("cannot write", file.string(), errno);
    }
    content.remove_prefix(static_cast<size_t>(n));
  }
}

void sync_path(const fs::path& path, int flags) {
  Descriptor d(path, flags);
  if (d.ok()) ::fsync(d.get());
}

void make_folder(const fs::path& folder) {
  std::error_code ec;
  if (folder.empty()) return;
  fs::create_directories(folder, ec);
  if (ec) throw system_error("cannot create the folder", folder.string(), ec.value());
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

bool is_file(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

bool is_free(const fs::path& folder) {
  std::error_code ec;
  return !is_there(folder) || (is_folder(folder) && fs::is_empty(folder, ec));
}

std::string read_file(const fs::path& file, std::uint64_t max_bytes) {
  Descriptor d(file, O_RDONLY);
  if (!d.ok()) throw system_error("cannot open", file.string(), errno);
  struct stat st {};
  if (::fstat(d.get(), &st) != 0) throw system_error("cannot read", file.string(), errno);
  if (S_ISDIR(st.st_mode)) throw system_error("cannot read", file.string(), EISDIR);
  if (static_cast<std::uint64_t>(st.st_size) > max_bytes)
    throw Error({.id = "FILE-SIZE",
                 .message = "the file is too large",
                 .file = file.string(),
                 .found = std::to_string(st.st_size) + " bytes",
                 .expected = "at most " + std::to_string(max_bytes) + " bytes"});
  std::string content;
  content.reserve(static_cast<size_t>(st.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(d.get(), buffer, sizeof buffer);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw system_error("cannot read", file.string(), errno);
    }
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > max_bytes) throw system_error("cannot read", file.string(), EFBIG);
  }
}

void write_file_atomically(const fs::path& file, std::string_view content) {
  make_folder(file.parent_path());
  const fs::path temporary = file.string() + ".part-" + std::to_string(::getpid());
  try {
    Descriptor d(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!d.ok()) throw system_error("cannot write", file.string(), errno);
    write_all(d.get(), content, file);
    if (::fsync(d.get()) != 0) throw system_error("cannot write", file.string(), errno);
    if (::rename(temporary.c_str(), file.c_str()) != 0) throw system_error("cannot write", file.string(), errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_path(file.parent_path().empty() ? fs::path(".") : file.parent_path(), O_RDONLY | O_DIRECTORY);
}

StagedFolder::StagedFolder(fs::path target)
    : target_(std::move(target)), staging_(target_.string() + ".part-" + std::to_string(::getpid())) {
  std::error_code ec;
  fs::remove_all(staging_, ec);
  make_folder(staging_);
}

StagedFolder::~StagedFolder() {
  std::error_code ec;
  if (!staging_.empty()) fs::remove_all(staging_, ec);
}

void StagedFolder::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(staging_))
    if (entry.is_regular_file()) sync_path(entry.path(), O_RDONLY);
  std::error_code ec;
  fs::path old;
  if (fs::exists(target_, ec)) {
    old = target_.string() + ".old-" + std::to_string(::getpid());
    fs::rename(target_, old, ec);
    if (ec) throw system_error("cannot replace", target_.string(), ec.value());
  }
  fs::rename(staging_, target_, ec);
  if (ec) {
    if (!old.empty()) fs::rename(old, target_);
    throw system_error("cannot create", target_.string(), ec.value());
  }
  staging_.clear();
  sync_path(target_.parent_path().empty() ? fs::path(".") : target_.parent_path(), O_RDONLY | O_DIRECTORY);
  if (!old.empty()) fs::remove_all(old, ec);
}

}  // namespace mw
