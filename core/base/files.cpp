// SPDX-License-Identifier: Apache-2.0
#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/file_system.h"

namespace mw {

namespace fs = std::filesystem;
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a named pipe";
  return S_ISSOCK(mode) ? "a socket" : "something else";
}

bool is_inherited(const fs::path& file) {
  const std::string name = file.string();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

// Git LFS leaves a small pointer file in place of a large file that was not fetched.
bool is_lfs_pointer(int fd, const struct stat& status) {
  constexpr std::string_view kBeginning = "version https://git-lfs.github.com/spec/";
  constexpr off_t kLargest = 1024;
  char head[kBeginning.size()];
  return status.st_size <= kLargest && ::pread(fd, head, sizeof head, 0) == static_cast<ssize_t>(sizeof head) &&
         std::string_view(head, sizeof head) == kBeginning;
}

void check_input(int fd, const fs::path& file, Pipes pipes) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw system_error("cannot read", file.string(), errno);
  if (S_ISFIFO(status.st_mode) && pipes == Pipes::inherited && is_inherited(file)) return;
  if (!S_ISREG(status.st_mode))
    throw Error("FILE-KIND", "not a regular file",
                {.file = file.string(), .found = kind_of(status.st_mode), .expected = "a regular file"});
  if (is_lfs_pointer(fd, status))
    throw Error("FILE-LFS", "the file is a Git LFS pointer; its contents were not fetched",
                {.file = file.string(), .fix = "run `git lfs pull` in its repository"});
}

}  // namespace

int open_input(const fs::path& file, Pipes pipes) {
  // Without O_NONBLOCK, opening a named pipe without a writer would block.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw system_error("cannot open", file.string(), errno);
  try {
    check_input(fd, file, pipes);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

std::string read_beginning(const fs::path& file, size_t bytes) {
  int fd = -1;
  try {
    fd = open_input(file);
  } catch (const Error&) {
    return {};
  }
  std::string text(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t n = ::read(fd, text.data() + filled, bytes - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filled += static_cast<size_t>(n);
  }
  ::close(fd);
  text.resize(filled);
  return text;
}

std::string read_text(const fs::path& file, std::uint64_t max_bytes) {
  std::string text = read_file(file, max_bytes);
  const size_t mark = text.size() - without_byte_order_mark(text, file.string()).size();
  text.erase(0, mark);
  return text;
}

std::string_view without_byte_order_mark(std::string_view text, const std::string& source) {
  if (text.starts_with("\xEF\xBB\xBF")) return text.substr(3);
  const bool wide = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
                    text.starts_with(std::string_view("\0\0\xFE\xFF", 4));
  if (wide)
    throw Error("TEXT-ENCODING", "the text is UTF-16 or UTF-32",
                {.file = source, .expected = "UTF-8", .fix = "save the file as UTF-8"});
  return text;
}

namespace fs = std::filesystem;
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
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

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    Descriptor d(entry.path(), O_RDONLY);
    if (!d.ok() || file_system().fsync(d.get()) != 0) throw system_error("cannot write", entry.path().string(), errno);
  }
}

}  // namespace

fs::path user_cache_folder() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache;
  if (const fs::path home = variable("HOME"); home.is_absolute()) return home / ".cache";
  return {};
}

bool path_exists(const fs::path& path) {
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

bool is_missing_or_empty(const fs::path& folder) {
  std::error_code ec;
  return !path_exists(folder) || (is_folder(folder) && fs::is_empty(folder, ec));
}

std::string read_file(const fs::path& file, std::uint64_t max_bytes) {
  const Descriptor d(open_input(file, Pipes::inherited));
  struct stat st {};
  if (::fstat(d.get(), &st) != 0) throw system_error("cannot read", file.string(), errno);
  const auto too_large = [&](const std::string& found) {
    return Error("FILE-SIZE", "the file exceeds the size limit",
                 {.file = file.string(),
                  .found = found + " bytes",
                  .expected = "at most " + std::to_string(max_bytes) + " bytes"});
  };
  if (static_cast<std::uint64_t>(st.st_size) > max_bytes) throw too_large(std::to_string(st.st_size));
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
    if (content.size() > max_bytes) throw too_large("more than " + std::to_string(max_bytes));
  }
}

void write_file_atomically(const fs::path& file, std::string_view content) {
  make_folders(file.parent_path());
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(content)));
  out.commit();
}

void make_executable(const fs::path& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) != 0 || file_system().chmod(file.c_str(), st.st_mode | ((st.st_mode & 0444) >> 2)) != 0)
    throw system_error("cannot make executable", file.string(), errno);
}

bool make_new_folder(const fs::path& folder) {
  if (file_system().mkdir(folder.c_str(), 0777) == 0) return true;
  if (errno == EEXIST) return false;
  throw system_error("cannot create the folder", folder.string(), errno);
}

void make_folders(const fs::path& folder) {
  if (folder.empty() || is_folder(folder)) return;
  make_folders(folder.parent_path());
  if (file_system().mkdir(folder.c_str(), 0777) == 0 || (errno == EEXIST && is_folder(folder))) return;
  throw system_error("cannot create the folder", folder.string(), errno == EEXIST ? ENOTDIR : errno);
}

void copy_atomically(const fs::path& from, const fs::path& to) {
  Descriptor in(from, O_RDONLY);
  if (!in.ok()) throw system_error("cannot open", from.string(), errno);
  AtomicFile out(to);
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    const ssize_t n = ::read(in.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error("cannot read", from.string(), errno);
    if (n == 0) return out.commit();
    out.write(std::span(buffer).first(static_cast<size_t>(n)));
  }
}

bool remove_tree(const fs::path& path) noexcept {
  try {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) return errno == ENOENT;
    if (!S_ISDIR(st.st_mode)) return file_system().unlink(path.c_str()) == 0;
    std::vector<fs::path> entries;
    std::error_code ec;
    for (fs::directory_iterator at(path, ec), end; !ec && at != end; at.increment(ec)) entries.push_back(at->path());
    bool removed = true;
    for (const fs::path& entry : entries) removed = remove_tree(entry) && removed;
    return removed && file_system().rmdir(path.c_str()) == 0;
  } catch (const std::exception&) {  // out of memory
    errno = ENOMEM;
    return false;
  }
}

StagedFolder::StagedFolder(fs::path target) : target_(std::move(target)) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "out/": its part is a sibling, not inside it
  remove_stale_parts_of(target_);
  staging_ = part_path(target_);
  remove_tree(staging_);
  make_folders(staging_);
  fd_ = ::open(staging_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ >= 0) lock_part(fd_);
}

StagedFolder::~StagedFolder() {
  if (!staging_.empty()) remove_tree(staging_);
  if (fd_ >= 0) ::close(fd_);
}

void StagedFolder::commit() {
  sync_tree(staging_);
  if (!path_exists(target_)) {
    if (file_system().rename(staging_.c_str(), target_.c_str()) != 0)
      throw system_error("cannot create", target_.string(), errno);
    staging_.clear();
    return sync_folder_of(target_);
  }
  // After the swap the staging name holds the old content; the destructor removes it.
  if (file_system().exchange(staging_.c_str(), target_.c_str()) == 0) return sync_folder_of(target_);
  if (errno != EINVAL && errno != ENOSYS) throw system_error("cannot replace", target_.string(), errno);
  const fs::path old = target_.string() + ".old-" + std::to_string(::getpid());
  if (file_system().rename(target_.c_str(), old.c_str()) != 0)
    throw system_error("cannot replace", target_.string(), errno);
  if (file_system().rename(staging_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    file_system().rename(old.c_str(), target_.c_str());
    throw system_error("cannot create", target_.string(), error);
  }
  staging_ = old;
  sync_folder_of(target_);
}

}  // namespace mw
