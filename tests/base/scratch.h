// SPDX-License-Identifier: GPL-3.0-or-later
// A temporary folder that the destructor removes, in memory if there is room: atomic writes wait for
// a disk, and fuzzers write thousands of files per second. Throws std::runtime_error if no folder is writable.
#pragma once
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mw::test {

class Scratch {
 public:
  Scratch() {
    std::string name = root() / "meshwright-test-XXXXXX";
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Writes a file and its parent folders below this folder; returns its path.
  std::filesystem::path put(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    int fd = create(file);
    if (fd < 0) {
      std::filesystem::create_directories(file.parent_path());
      fd = create(file);
    }
    const bool written = fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (fd >= 0) ::close(fd);
    if (!written) throw std::runtime_error("cannot write " + file.string());
    return file;
  }

 private:
  static std::filesystem::path root() {
    constexpr std::uintmax_t kRoom = 1 << 30;  // containers provide 64 MiB, which some tests fill
    std::error_code none;
    const std::filesystem::path memory = "/dev/shm";
    const auto space = std::filesystem::space(memory, none);
    const bool fits = !none && space.available >= kRoom && ::access(memory.c_str(), W_OK) == 0;
    return fits ? memory : std::filesystem::temp_directory_path();
  }
  static int create(const std::filesystem::path& file) {
    return ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }

  std::filesystem::path path_;
};

}  // namespace mw::test
