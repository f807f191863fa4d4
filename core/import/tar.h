// SPDX-License-Identifier: Apache-2.0
// Tar archives (ustar) of regular files, read strictly: links, devices, folders, extensions, absolute names, "..",
// names that occur twice, and wrong checksums are errors BUNDLE. Sizes are octal, or base 256 above 8 GiB as GNU tar
// writes them. Use each object on one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace mw::importing {

inline constexpr size_t kTarBlock = 512;

// Relative, at most 100 bytes of letters, digits and "._-/", without empty parts, "." and "..".
bool is_archive_name(std::string_view name);

class TarWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;
  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}
  void begin(const std::string& name, std::uint64_t bytes);  // an archive name
  void write(std::span<const std::byte> bytes);              // of the entry, as many as begun in total
  void add(const std::string& name, std::string_view content);
  void finish();  // ends the last entry and the archive

 private:
  void end_entry();
  Sink sink_;
  std::uint64_t left_ = 0, padding_ = 0;  // of the entry
};

class TarReader {
 public:
  // Fills the beginning of the span; returns the number of bytes, 0 at the end.
  using Source = std::function<size_t(std::span<char>)>;
  TarReader(Source source, std::string file) : source_(std::move(source)), file_(std::move(file)) {}
  struct Entry {
    std::string name;
    std::uint64_t bytes = 0;
  };
  // Skips the rest of the current entry. Empty at the end of the archive.
  std::optional<Entry> next();
  // The next bytes of the current entry; 0 at its end.
  size_t read(std::span<char> out);
  // The whole current entry, of at most `most` bytes.
  std::string content(const Entry& entry, std::uint64_t most);

 private:
  void fill(std::span<char> out);  // throws at the end
  Source source_;
  std::string file_;
  std::set<std::string> names_;
  std::uint64_t left_ = 0, padding_ = 0;  // of the entry
};

[[noreturn]] void refuse_bundle(const std::string& file, const std::string& message, const std::string& place,
                                const std::string& found, const std::string& expected);

}  // namespace mw::importing
