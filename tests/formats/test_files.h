// SPDX-License-Identifier: GPL-3.0-or-later
// A temporary folder, files with given bytes, and the Problem that a call throws.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "tests/base/scratch.h"

namespace mw::formats {

using test::Scratch;

inline void put(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// A file in memory, for thousands of rewrites.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("mw-test", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  void set(const std::string& bytes) {
    ASSERT_EQ(::ftruncate(fd_, 0), 0);
    ASSERT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

inline std::string get(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// A safetensors file with the given header text and data bytes.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string out(8, '\0');
  const std::uint64_t n = header.size();
  std::memcpy(out.data(), &n, sizeof n);
  return out + header + data;
}

// The Problem that `act` throws; fails the test if it throws nothing.
template <class Act>
Problem problem_of(Act act) {
  try {
    act();
  } catch (const Error& e) {
    return e.problem();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace mw::formats
