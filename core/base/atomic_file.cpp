// SPDX-License-Identifier: Apache-2.0
#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/partial_files.h"

namespace mw {
namespace {

constexpr size_t kBuffer = 1 << 20;

std::filesystem::path fresh_part_path(const std::filesystem::path& target) {
  remove_stale_parts_of(target);
  return part_path(target);
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& file, Create create) : OutputFile(file, create, file) {}

OutputFile::OutputFile(const std::filesystem::path& file, Create create, std::filesystem::path shown)
    : shown_(std::move(shown)) {
  const int existing = create == Create::must_be_new ? O_EXCL : O_TRUNC;
  fd_ = file_system().open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | existing, 0666);
  if (fd_ < 0) throw system_error("cannot write", shown_.string(), errno);
}

OutputFile::~OutputFile() {
  ::close(fd_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = file_system().write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw system_error("cannot write", shown_.string(), errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = file_system().pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      throw system_error("cannot write", shown_.string(), errno);
    }
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::resize(std::uint64_t bytes) {
  if (file_system().ftruncate(fd_, static_cast<off_t>(bytes)) != 0)
    throw system_error("cannot write", shown_.string(), errno);
}

void OutputFile::start_writeback(std::uint64_t offset, std::uint64_t bytes) const {
  ::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void OutputFile::sync() {
  if (file_system().fsync(fd_) != 0) throw system_error("cannot write", shown_.string(), errno);
}

AtomicFile::AtomicFile(std::filesystem::path target)
    : target_(std::move(target)), part_(fresh_part_path(target_)), file_(part_, OutputFile::Create::replace, target_) {
  lock_part(file_.descriptor());
}

AtomicFile::~AtomicFile() {
  if (!committed_) file_system().unlink(part_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() >= kBuffer)
    write_through(bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::write_through(std::span<const std::byte> bytes) {
  file_.write(bytes);
  file_.start_writeback(written_, bytes.size());
  written_ += bytes.size();
}

void AtomicFile::commit() {
  flush();
  file_.sync();
  if (file_system().rename(part_.c_str(), target_.c_str()) != 0)
    throw system_error("cannot write", target_.string(), errno);
  committed_ = true;
  sync_folder_of(target_);
}

}  // namespace mw
