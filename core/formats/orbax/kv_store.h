// SPDX-License-Identifier: Apache-2.0
// Key-value stores that hold the arrays of a checkpoint: plain files and OCDBT databases. Thread-safe.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/orbax/bytes.h"

namespace mw::formats {

struct StoredValue {
  std::filesystem::path file;  // empty if `bytes` holds the value
  std::uint64_t offset = 0, length = 0;
  Blob bytes{};  // an inline value
};

class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual const std::filesystem::path& folder() const = 0;
  virtual std::vector<std::string> keys() const = 0;  // ascending
  virtual std::optional<StoredValue> find(const std::string& key) const = 0;
  // Throws ORBAX if the file is missing or too short.
  static Blob read(const StoredValue& value);
};

// The files below `folder`; the keys are their relative paths.
std::unique_ptr<KvStore> open_files(const std::filesystem::path& folder);

// OCDBT databases of tensorstore (kvstore/ocdbt/index.rst), the usual storage of Orbax checkpoints.

// Opens the newest version of the database whose manifest.ocdbt is in `folder`. Throws ORBAX for an unfinished save
// (process folders without a manifest), wrong checksums, missing data files, and references outside the folder.
std::unique_ptr<KvStore> open_ocdbt(const std::filesystem::path& folder);

}  // namespace mw::formats
