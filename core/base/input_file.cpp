// SPDX-License-Identifier: Apache-2.0
#include "core/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/files.h"

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
    throw Error({.id = "FILE-KIND",
                 .message = "not a regular file",
                 .file = file.string(),
                 .found = kind_of(status.st_mode),
                 .expected = "a regular file"});
  if (is_lfs_pointer(fd, status))
    throw Error({.id = "FILE-LFS",
                 .message = "the file is a Git LFS pointer; its contents were not fetched",
                 .file = file.string(),
                 .fix = "run `git lfs pull` in its repository"});
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
    throw Error({.id = "TEXT-ENCODING",
                 .message = "the text is UTF-16 or UTF-32",
                 .file = source,
                 .expected = "UTF-8",
                 .fix = "save the file as UTF-8"});
  return text;
}

}  // namespace mw
