// SPDX-License-Identifier: Apache-2.0
// Files on their way there and back, as remote.py's put and fetch have them. One thread.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/launch/frames.h"

namespace mw::launch {

using Copied = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes

// What put() reads: a line {"path", "size", "mode"}, the file's bytes, ..., a line {"files"}.
class Outgoing {
 public:
  Outgoing(std::filesystem::path folder, std::vector<std::string> files, Copied copied);
  std::uint64_t bytes() const { return bytes_; }
  std::string_view next();  // valid until the next call; empty: the end. Throws Error where a file cannot be read

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string_view header();
  std::filesystem::path folder_;
  std::vector<std::string> files_;
  Copied copied_;
  size_t at_ = 0;
  bool ended_ = false;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t bytes_ = 0, sent_ = 0, left_ = 0;
  std::string buffer_;
};

// Throws Error LAUNCH-PATH unless the path stays below the folder that it is relative to: no absolute path, no "..".
// `place` is what is at fault: an option, a folder.
void require_inside(std::string_view path, const std::string& place);

// Receives the files that fetch() sends, into an empty folder. The sender is not trusted: paths that
// would lead out of the folder or come twice, files longer than announced or than the disk has room for are an Error.
class Incoming {
 public:
  Incoming(std::filesystem::path folder, Copied copied) : folder_(std::move(folder)), copied_(std::move(copied)) {}
  void take(const Frame& frame);
  void end(const Json& head);  // throws Error LAUNCH-STREAM where files are missing
  const std::vector<std::string>& files() const { return files_; }
  // Symbolic links, which are not fetched: how many there are, and the first of them.
  long long links() const { return links_; }
  const std::vector<std::string>& link_paths() const { return link_paths_; }

 private:
  void open(const Frame& frame);
  void write(std::string_view bytes);
  void close();
  std::filesystem::path folder_, path_;
  Copied copied_;
  std::optional<OutputFile> file_;
  std::vector<std::string> files_, link_paths_;
  long long links_ = 0;
  std::uint64_t got_ = 0, total_ = 0;
  std::uint64_t left_ = 0;  // of the file, as announced
};

}  // namespace mw::launch
