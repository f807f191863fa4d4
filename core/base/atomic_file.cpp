// SPDX-License-Identifier: Apache-2.0
#include "core/formats/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace mw::formats {
namespace {

constexpr size_t kBuffer = 1 << 20;

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target)
    : target_(std::move(target)), part_(target_.string() + ".part-" + std::to_string(::getpid())) {
  fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw system_error("cannot write", target_.string(), errno);
  buffer_.reserve(kBuffer);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() >= kBuffer)
    put(bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void AtomicFile::put(std::span<const std::byte> bytes) {
  const std::uint64_t first = written_;
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw system_error("cannot write", target_.string(), errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    written_ += static_cast<std::uint64_t>(n);
  }
  // The disk may begin: what is computed meanwhile need not be waited for at the end.
  ::sync_file_range(fd_, static_cast<off_t>(first), static_cast<off_t>(written_ - first), SYNC_FILE_RANGE_WRITE);
}

void AtomicFile::commit() {
  flush();
  if (::fsync(fd_) != 0) throw system_error("cannot write", target_.string(), errno);
  if (::rename(part_.c_str(), target_.c_str()) != 0) throw system_error("cannot write", target_.string(), errno);
  ::close(fd_);
  fd_ = -1;
  const std::filesystem::path folder = target_.parent_path();
  const int d = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (d < 0) return;
  ::fsync(d);
  ::close(d);
}

}  // namespace mw::formats
