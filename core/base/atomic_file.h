// SPDX-License-Identifier: Apache-2.0
// Files written in pieces through file_system(). Errors are mw::Error naming the target. One thread each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/base/file_system.h"

namespace mw {

// A descriptor open for writing. Creates the file; must_be_new fails where one exists.
class OutputFile {
 public:
  enum class Create { replace, must_be_new };
  OutputFile(const std::filesystem::path& file, Create create);  // the folder must exist
  // Errors name `shown` instead: the file that a part will become.
  OutputFile(const std::filesystem::path& file, Create create, std::filesystem::path shown);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void sync();
  int descriptor() const { return fd_; }

 private:
  std::filesystem::path shown_;
  int fd_ = -1;
};

// Appears under its name whole or not at all: writes a sibling "<name>.part-<pid>", which commit() renames.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);  // the folder must exist
  ~AtomicFile();                                      // uncommitted: removes the sibling
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void commit();  // fsync, rename over the target, fsync the folder

 private:
  void flush();
  void put(std::span<const std::byte> bytes);

  std::filesystem::path target_, part_;
  OutputFile file_;
  std::vector<std::byte> buffer_;  // collects the small writes of many small tensors
  std::uint64_t written_ = 0;
  bool committed_ = false;
};

}  // namespace mw
