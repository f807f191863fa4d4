// SPDX-License-Identifier: Apache-2.0
// Where a checkpoint's arrays lie: a map of names to bytes, as an OCDBT database or as plain files. Reading is const
// and may be done from several threads; nothing in a file is trusted. Layout: tensorstore's
// kvstore/ocdbt/index.rst.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/orbax/bytes.h"

namespace mw::formats {

struct StoredValue {
  std::filesystem::path file;  // empty: inline
  std::uint64_t offset = 0, length = 0;
  Blob bytes{};  // inline ones
};

class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual const std::filesystem::path& folder() const = 0;
  virtual std::vector<std::string> keys() const = 0;  // ascending
  virtual std::optional<StoredValue> find(const std::string& key) const = 0;
  // The bytes of a value; throws Error ORBAX for a file that is not there or too short.
  static Blob read(const StoredValue& value);
};

// The newest version of the database in `folder` (manifest.ocdbt there). Throws Error ORBAX for a save that was not
// finished (process folders without a manifest), wrong checksums, missing data files, references outside the folder.
std::unique_ptr<KvStore> open_ocdbt(const std::filesystem::path& folder);
// Files below `folder`, their relative paths the keys.
std::unique_ptr<KvStore> open_files(const std::filesystem::path& folder);

}  // namespace mw::formats
