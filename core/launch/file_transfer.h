// SPDX-License-Identifier: Apache-2.0
// File transfer in the format of remote.py's put and fetch. Use each object on one thread.
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
#include "core/launch/remote_call.h"

namespace mw::launch {

using TransferProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes

// Stream of files for `put`: per file a line {"path", "size", "mode"} and its bytes, then a line {"files"}.
class UploadStream {
 public:
  UploadStream(std::filesystem::path folder, std::vector<std::string> files, TransferProgress copied);
  std::uint64_t bytes() const { return bytes_; }
  std::string_view next();  // valid until the next call; empty at the end

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string_view header();
  std::filesystem::path folder_;
  std::vector<std::string> files_;
  TransferProgress copied_;
  size_t at_ = 0;
  bool ended_ = false;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t bytes_ = 0, sent_ = 0, left_ = 0;
  std::string buffer_;
};

// Throws LAUNCH-PATH, naming `place` (an option or a folder), if the path is absolute or contains "..".
void require_inside(std::string_view path, const std::string& place);

// Receives the files of `fetch` in an empty folder. Throws for paths outside the folder, duplicate paths, wrong sizes
// and files that do not fit on the disk.
class DownloadReceiver {
 public:
  DownloadReceiver(std::filesystem::path folder, TransferProgress copied)
      : folder_(std::move(folder)), copied_(std::move(copied)) {}
  void take(const Frame& frame);
  void end(const Json& head);  // throws LAUNCH-STREAM if files are missing
  const std::vector<std::string>& files() const { return files_; }
  // Number of symbolic links, which are not fetched, and the paths of the first ones.
  long long links() const { return links_; }
  const std::vector<std::string>& link_paths() const { return link_paths_; }

 private:
  void open(const Frame& frame);
  void write(std::string_view bytes);
  void close();
  std::filesystem::path folder_, path_;
  TransferProgress copied_;
  std::optional<OutputFile> file_;
  std::vector<std::string> files_, link_paths_;
  long long links_ = 0;
  std::uint64_t got_ = 0, total_ = 0;
  std::uint64_t left_ = 0;  // remaining bytes of the current file
};

}  // namespace mw::launch
