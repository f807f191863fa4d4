// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/readers/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "core/base/files.h"

namespace mw::readers {
namespace fs = std::filesystem;

Scratch::Scratch() {
  static std::atomic<int> count = 0;
  const fs::path memory = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
  folder_ = memory / ("mw_readers_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
  fs::create_directories(folder_);
}

Scratch::~Scratch() {
  std::error_code error;
  fs::remove_all(folder_, error);
}

fs::path Scratch::put(const std::string& name, std::string_view bytes) const {
  const fs::path file = folder_ / name;
  int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    fs::create_directories(file.parent_path());
    fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  const bool written = fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (fd >= 0) ::close(fd);
  if (!written) throw std::runtime_error("cannot write " + file.string());
  return file;
}

std::string fixture(const std::string& path) {
  return read_file(fs::path(MW_FIXTURES) / path);
}

std::string resource(const std::string& path) {
  return read_file(fs::path(MW_RESOURCES) / path);
}

std::vector<std::string> fixtures_called(const std::string& folder, const std::string& file) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(MW_FIXTURES) / folder))
    if (entry.is_regular_file() && entry.path().filename() == file) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  std::vector<std::string> all;
  for (const fs::path& path : found) all.push_back(read_file(path));
  return all;
}

Choice choose(std::string_view bytes, size_t n) {
  if (bytes.empty()) return {0, bytes};
  return {static_cast<unsigned char>(bytes.front()) % n, bytes.substr(1)};
}

}  // namespace mw::readers
