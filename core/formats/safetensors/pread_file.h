// SPDX-License-Identifier: Apache-2.0
// A regular file that is read at offsets with pread. Errors name the file. Thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace mw::formats {

class PreadFile {
 public:
  explicit PreadFile(const std::filesystem::path& file);
  ~PreadFile();
  PreadFile(const PreadFile&) = delete;
  PreadFile& operator=(const PreadFile&) = delete;
  std::uint64_t size() const { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const;  // fills `out` or throws FILE-SHORT
  void will_read(std::uint64_t offset, std::uint64_t bytes) const;  // readahead hint

 private:
  std::filesystem::path file_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace mw::formats
