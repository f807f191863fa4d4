// SPDX-License-Identifier: Apache-2.0
// Bounds-checked reading of binary data, checksums and decompression. Errors are ORBAX and name file and byte. Use each
// Cursor on one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace mw::formats {

using Blob = std::vector<std::byte>;

class Cursor {
 public:
  // `file` and `what` name the data in errors: "manifest.ocdbt", "B+tree node at byte 512".
  Cursor(std::span<const std::byte> bytes, std::string file, std::string what)
      : bytes_(bytes), file_(std::move(file)), what_(std::move(what)) {}

  size_t left() const { return bytes_.size() - at_; }
  std::uint8_t u8();
  std::uint32_t u32_big();
  std::uint32_t u32();
  std::uint64_t u64();
  std::uint64_t varint(std::uint64_t most = UINT64_MAX);  // unsigned LEB128
  std::string_view text(size_t size);
  std::span<const std::byte> take(size_t size);
  void finish() const;  // throws if bytes are left
  // Reads a count of items that take at least `item_bytes` of the remaining bytes each, which bounds allocations.
  size_t count(size_t item_bytes, std::uint64_t most);
  std::vector<std::uint64_t> varints(size_t n, std::uint64_t most = UINT64_MAX);
  [[noreturn]] void fail(const std::string& message, const std::string& found = "",
                         const std::string& expected = "") const;

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  std::string file_, what_;
};

[[noreturn]] void fail_orbax(const std::filesystem::path& file, const std::string& message,
                             const std::string& found = "", const std::string& expected = "",
                             const std::string& fix = "", const std::string& place = "");

std::uint32_t crc32c(std::span<const std::byte> bytes);  // Castagnoli, not masked

// Decompresses exactly one zstd frame. Throws if the result is longer than `most`.
Blob unzstd(std::span<const std::byte> bytes, std::uint64_t most, const std::string& file, const std::string& what);

}  // namespace mw::formats
