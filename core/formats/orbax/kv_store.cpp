// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/kv_store.h"

#include <algorithm>
#include <system_error>

#include "core/base/files.h"
#include "core/formats/safetensors/pread_file.h"

namespace mw::formats {
namespace fs = std::filesystem;

Blob KvStore::read(const StoredValue& value) {
  if (value.file.empty()) return value.bytes;
  const PreadFile file(value.file);
  if (value.offset > file.size() || value.length > file.size() - value.offset)
    throw Error({.id = "ORBAX",
                 .message = "the data file is shorter than its index states",
                 .file = value.file.string(),
                 .place = "byte " + std::to_string(value.offset),
                 .found = std::to_string(file.size()) + " bytes",
                 .expected = std::to_string(value.length) + " bytes from there",
                 .fix = "copy the checkpoint again with all of its folders"});
  Blob bytes(static_cast<size_t>(value.length));
  file.read(value.offset, bytes);
  return bytes;
}

namespace {

class FileStore : public KvStore {
 public:
  explicit FileStore(fs::path folder) : folder_(std::move(folder)) {}
  const fs::path& folder() const override { return folder_; }
  std::vector<std::string> keys() const override {
    std::vector<std::string> all;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
      if (is_file(at->path())) all.push_back(at->path().lexically_relative(folder_).generic_string());
    if (error) throw system_error("cannot list", folder_.string(), error.value());
    std::sort(all.begin(), all.end());
    return all;
  }
  std::optional<StoredValue> find(const std::string& key) const override {
    const fs::path relative = fs::path(key).lexically_normal();
    if (relative.is_absolute() || (!relative.empty() && *relative.begin() == "..")) return std::nullopt;
    std::error_code error;
    const fs::path file = folder_ / relative;
    if (!is_file(file)) return std::nullopt;
    const auto size = fs::file_size(file, error);
    if (error) return std::nullopt;
    return StoredValue{.file = file, .offset = 0, .length = size};
  }

 private:
  fs::path folder_;
};

}  // namespace

std::unique_ptr<KvStore> open_files(const fs::path& folder) {
  return std::make_unique<FileStore>(folder);
}

}  // namespace mw::formats
