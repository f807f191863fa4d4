// SPDX-License-Identifier: Apache-2.0
// A file written in pieces that appears whole or not at all. One thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace mw::formats {

class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);  // opens a sibling; the folder must exist
  ~AtomicFile();                                      // uncommitted: removes the sibling
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void commit();  // fsync, rename over the target, fsync the folder

 private:
  void flush();
  void put(std::span<const std::byte> bytes);

  std::filesystem::path target_, part_;
  std::vector<std::byte> buffer_;  // many small tensors make many small writes
  int fd_ = -1;
  std::uint64_t written_ = 0;
};

}  // namespace mw::formats
