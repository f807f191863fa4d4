// SPDX-License-Identifier: Apache-2.0
// Keeps the tokens of data files on disk (token_rows.h), so that planning, the Data page and runs tokenise a file once.
// An entry is named by the hash of the data, and by that of the tokenizer and of the settings that change tokens; it
// is found by size, times and inode of the data file, or by hashing it. Thread-safe, and safe for several processes: an
// entry appears by a rename, and one writer at a time makes it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "core/data/dataset/token_rows.h"

namespace mw::data {

inline constexpr const char* kRowCacheFolder = "cache";  // in the folder of the run store

struct RowCacheOptions {
  std::filesystem::path folder;               // empty: tokens are kept in memory
  std::uint64_t least_bytes = 1 << 20;        // a smaller data file is not kept: it is tokenised in a moment
  std::uint64_t most_bytes = 20'000'000'000;  // of all entries; also at most a tenth of the free disk space
};

// Receives each row in order; `problem` is that of a bad row, if it is known yet.
using DataRowSink = std::function<void(const DataRow& row, const Problem* problem)>;

struct RowBuild;  // a scan that writes an entry

// Several objects may use one folder: they do not follow each other's scans, but wait for the entry.
class RowCache {
 public:
  explicit RowCache(RowCacheOptions options = {}) : options_(std::move(options)) {}
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  const RowCacheOptions& options() const { return options_; }
  // The tokens of all rows of options.path: those of the cache, or those of a scan, which makes an entry. A second call
  // for the same rows follows the first one while it reads. If the cache cannot be written, the tokens are kept in
  // memory. Throws as scan_rows() and passes on exceptions of `sink`, which end the scan without an entry.
  std::shared_ptr<const TokenRows> open(const DatasetOptions& options, const Tokenizer& tokenizer,
                                        const std::stop_token& stop = {}, const CountProgress& progress = {},
                                        const DataRowSink& sink = {});

 private:
  class Writer;

  const RowCacheOptions options_;
  std::mutex mutex_;
  std::map<std::filesystem::path, std::shared_ptr<RowBuild>> builds_;  // by the stamp file
};

// The cache of this process, without a folder by default. There is one because plan, pages and runs of a process must
// find the same scans to follow them, while the options of a data set, which all of them pass on, are values that are
// compared, stored and sent to other processes. Code that calls neither this nor open_dataset() depends on no such
// state. Set it before other threads read data.
void set_row_cache(RowCacheOptions options);
std::shared_ptr<RowCache> row_cache();

struct RowCacheUse {
  std::int64_t entries = 0, bytes = 0;
};
RowCacheUse row_cache_use(const std::filesystem::path& folder);

}  // namespace mw::data
