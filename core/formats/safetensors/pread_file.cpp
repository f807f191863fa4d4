// SPDX-License-Identifier: Apache-2.0
#include "core/formats/safetensors/pread_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/input_file.h"

namespace mw::formats {

PreadFile::PreadFile(const std::filesystem::path& file) : file_(file) {
  fd_ = open_input(file);
  struct stat st {};
  if (::fstat(fd_, &st) == 0) {
    size_ = static_cast<std::uint64_t>(st.st_size);
    return;
  }
  const int error = errno;
  ::close(fd_);
  throw system_error("cannot read", file.string(), error);
}

PreadFile::~PreadFile() {
  ::close(fd_);
}

void PreadFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error("cannot read", file_.string(), errno);
    if (n == 0)
      throw Error({.id = "FILE-SHORT",
                   .message = "the file is shorter than expected",
                   .file = file_.string(),
                   .found = "end at byte " + std::to_string(offset)});
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

void PreadFile::will_read(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

}  // namespace mw::formats
