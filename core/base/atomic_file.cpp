// SPDX-License-Identifier: Apache-2.0
#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "core/base/error.h"

namespace mw {

namespace fs = std::filesystem;
namespace {

enum class PartKind { part, old };
struct Part {
  PartKind kind;
  std::string target;  // file name without the suffix
  pid_t writer;
};

std::optional<Part> parse_part(const std::string& name) {
  for (const auto& [suffix, kind] : {std::pair(".part-", PartKind::part), std::pair(".old-", PartKind::old)}) {
    const size_t at = name.rfind(suffix);
    if (at == std::string::npos || at == 0) continue;
    pid_t pid = 0;
    const char* begin = name.data() + at + std::string_view(suffix).size();
    const char* end = name.data() + name.size();
    const auto [parsed, error] = std::from_chars(begin, end, pid);
    if (error == std::errc{} && parsed == end && pid > 0) return Part{kind, name.substr(0, at), pid};
  }
  return std::nullopt;
}

bool is_stale(const fs::path& path, const Part& part) {
  if (::kill(part.writer, 0) == 0 || errno != ESRCH) return false;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool unlocked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return unlocked;
}

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

// Removes the stale parts of `target`, or of all targets if it is empty.
void remove_stale_parts(const fs::path& folder, const std::string& target) {
  std::vector<fs::path> found;  // collected first: a directory iterator may skip entries while the folder changes
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    const auto part = parse_part(at->path().filename().string());
    if (part && (target.empty() || part->target == target) && is_stale(at->path(), *part)) found.push_back(at->path());
  }
  for (const fs::path& path : found) {
    const Part part = *parse_part(path.filename().string());
    const fs::path final_name = folder / part.target;
    if (part.kind == PartKind::old && !path_exists(final_name))
      file_system().rename(path.c_str(), final_name.c_str());
    else
      remove_tree(path);
  }
}

}  // namespace

fs::path part_path(const fs::path& target) {
  return target.string() + ".part-" + std::to_string(::getpid());
}

void lock_part(int descriptor) {
  (void)::flock(descriptor, LOCK_EX | LOCK_NB);  // may fail on file systems without locks; is_stale then uses the pid
}

FileLock::FileLock(const fs::path& file) {
  const fs::path lock = file.string() + ".lock";
  make_folders(folder_of(file));
  fd_ = file_system().open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) throw system_error("cannot open the lock", lock.string(), errno);
  constexpr std::chrono::milliseconds kMostWait(5000), kPause(20);  // a file is written in far less
  for (auto waited = kPause; ::flock(fd_, LOCK_EX | LOCK_NB) != 0; waited += kPause) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (waited > kMostWait) {
      ::close(fd_);
      throw system_error("another process holds the lock", lock.string(), EWOULDBLOCK);
    }
    std::this_thread::sleep_for(kPause);
  }
}

FileLock::~FileLock() {
  ::close(fd_);
}

void sync_folder_of(const fs::path& target) {
  const int fd = ::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  file_system().fsync(fd);
  ::close(fd);
}

void remove_stale_parts_of(const fs::path& target) noexcept {
  try {
    remove_stale_parts(folder_of(target), target.filename().string());
  } catch (const std::exception&) {  // out of memory
  }
}

void remove_stale_parts_in(const fs::path& folder) noexcept {
  try {
    remove_stale_parts(folder, {});
  } catch (const std::exception&) {
  }
}

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
