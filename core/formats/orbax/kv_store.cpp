// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/kv_store.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/orbax/ocdbt_format.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {

namespace fs = std::filesystem;

Blob KvStore::read(const StoredValue& value) {
  if (value.file.empty()) return value.bytes;
  const PreadFile file(value.file);
  if (value.offset > file.size() || value.length > file.size() - value.offset)
    throw Error("ORBAX", "the data file is shorter than its index states",
                {.file = value.file.string(),
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

namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostNode = 1 << 28, kMostKeys = 50'000'000;
constexpr size_t kMostKey = 65535;
constexpr int kMostHeight = 64;

Blob read_whole(const fs::path& file, std::uint64_t most) {
  const PreadFile in(file);
  if (in.size() > most)
    fail_orbax(file, "the file exceeds the size limit", std::to_string(in.size()) + " bytes", std::to_string(most));
  Blob bytes(static_cast<size_t>(in.size()));
  in.read(0, bytes);
  return bytes;
}

bool is_process_folder(const fs::directory_entry& entry) {
  return is_folder(entry.path()) && entry.path().filename().string().starts_with("ocdbt.process_");
}

// The file manifest.<16 hex digits> with the highest generation.
fs::path newest_numbered(const fs::path& folder) {
  std::string newest;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    constexpr std::string_view kStem = "manifest.";
    if (name.size() == kStem.size() + 16 && name.starts_with(kStem) &&
        name.find_first_not_of("0123456789abcdef", kStem.size()) == std::string::npos)
      newest = std::max(newest, name);
  }
  if (newest.empty())
    fail_orbax(folder / "manifest.ocdbt", "the numbered manifest is missing", "", "manifest.0000000000000001 or later",
               "copy the checkpoint again with all of its files");
  return folder / newest;
}

ocdbt::Manifest read_manifest(const fs::path& folder) {
  const fs::path file = folder / "manifest.ocdbt";
  if (!path_exists(file)) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (is_process_folder(*at))
        fail_orbax(folder, "the save was not finished: the data of its processes was not merged",
                   at->path().filename().string(), "manifest.ocdbt",
                   "choose an earlier step, or finish the save with the program that started it");
    fail_orbax(folder, "the folder contains no OCDBT database", "", "manifest.ocdbt");
  }
  ocdbt::Manifest manifest = ocdbt::parse_manifest(read_whole(file, kMostNode), file.string());
  if (manifest.kind == ocdbt::Manifest::Kind::single) return manifest;
  const fs::path numbered = newest_numbered(folder);
  manifest = ocdbt::parse_manifest(read_whole(numbered, kMostNode), numbered.string());
  if (manifest.kind != ocdbt::Manifest::Kind::single)
    fail_orbax(numbered, "the numbered manifest lists no version", "another configuration", "versions");
  return manifest;
}

class OcdbtStore : public KvStore {
 public:
  explicit OcdbtStore(fs::path folder) : folder_(std::move(folder)) {
    const ocdbt::Manifest manifest = read_manifest(folder_);
    if (manifest.root_height > kMostHeight)
      fail_orbax(folder_ / "manifest.ocdbt", "the tree exceeds the height limit", std::to_string(manifest.root_height));
    if (manifest.root) walk(*manifest.root, "", "", manifest.root_height);
    visited_.clear();
  }
  const fs::path& folder() const override { return folder_; }
  std::vector<std::string> keys() const override {
    std::vector<std::string> all;
    for (const auto& [key, value] : values_) all.push_back(key);
    return all;
  }
  std::optional<StoredValue> find(const std::string& key) const override {
    const auto at = values_.find(key);
    return at == values_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  // Resolves the path of a data file; throws if it is outside the folder.
  const fs::path& resolve(const std::string& path) {
    if (const auto known = resolved_.find(path); known != resolved_.end()) return known->second;
    const fs::path relative = fs::path(path).lexically_normal();
    if (path.empty() || relative.is_absolute() || *relative.begin() == ".." || path.find('\0') != std::string::npos)
      fail_orbax(folder_, "an entry refers to a file outside the checkpoint's folder", valid_utf8(path),
                 "a path below the folder", "do not use this checkpoint: it may be malicious");
    const fs::path file = folder_ / relative;
    if (!path_exists(file))
      fail_orbax(file, "the data file is missing", "", "the file that the manifest refers to",
                 "copy the checkpoint again with all of its folders, ocdbt.process_* included");
    return resolved_.emplace(path, file).first->second;
  }

  ocdbt::Node read_node(const ocdbt::Reference& at, const std::string& inherited) {
    const fs::path file = resolve(inherited + at.file.base + at.file.relative);
    const std::string what = "B+tree node at byte " + std::to_string(at.offset);
    if (!visited_.insert({file.string(), at.offset}).second) fail_orbax(file, "a node is its own descendant", what);
    if (at.length > kMostNode)
      fail_orbax(file, "a node exceeds the size limit", std::to_string(at.length), std::to_string(kMostNode));
    const Blob blob = read({.file = file, .offset = at.offset, .length = at.length});
    return ocdbt::parse_node(blob, file.string(), what, kMostNode);
  }

  void walk(const ocdbt::Reference& at, const std::string& inherited, const std::string& prefix, int height) {
    ocdbt::Node node = read_node(at, inherited);
    if (node.height != height)
      fail_orbax(folder_, "the height of a node does not match its level", std::to_string(node.height),
                 std::to_string(height));
    const std::string base = inherited + at.file.base;
    for (const ocdbt::InteriorEntry& child : node.children) {
      if (prefix.size() + child.subtree.size() > kMostKey) fail_orbax(folder_, "a key is too long");
      walk(child.child, base, prefix + child.subtree, height - 1);
    }
    for (ocdbt::LeafEntry& leaf : node.leaves) add(std::move(leaf), base, prefix);
  }

  void add(ocdbt::LeafEntry leaf, const std::string& base, const std::string& prefix) {
    if (values_.size() >= kMostKeys)
      fail_orbax(folder_, "the database has too many keys", "", "at most " + std::to_string(kMostKeys));
    if (prefix.size() + leaf.key.size() > kMostKey) fail_orbax(folder_, "a key is too long");
    StoredValue value{.file = {}, .offset = leaf.offset, .length = leaf.length, .bytes = std::move(leaf.bytes)};
    if (!leaf.inlined) value.file = resolve(base + leaf.file.base + leaf.file.relative);
    values_.emplace(prefix + leaf.key, std::move(value));
  }

  fs::path folder_;
  std::map<std::string, StoredValue> values_;
  std::map<std::string, fs::path> resolved_;  // data files by their path in entries
  std::set<std::pair<std::string, std::uint64_t>> visited_;
};

}  // namespace

std::unique_ptr<KvStore> open_ocdbt(const fs::path& folder) {
  return std::make_unique<OcdbtStore>(folder);
}

}  // namespace mw::formats
