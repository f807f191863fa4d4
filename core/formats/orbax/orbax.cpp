// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/orbax.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/orbax/kv_store.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostMetadata = 256 << 20;
constexpr std::string_view kUnfinished = ".orbax-checkpoint-tmp";

bool has(const fs::path& folder, const char* name) {
  return path_exists(folder / name);
}

bool unfinished(const fs::path& folder) {
  return folder.filename().string().find(kUnfinished) != std::string::npos;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_folder(at->path())) all.push_back(at->path());
  if (error) throw system_error("cannot list", folder.string(), error.value());
  std::sort(all.begin(), all.end());
  return all;
}

bool is_item(const fs::path& folder) {
  return has(folder, "_METADATA");
}
bool is_step(const fs::path& folder) {
  return has(folder, "_CHECKPOINT_METADATA") || has(folder, "orbax.checkpoint");
}

long step_number(const fs::path& folder) {
  std::string name = folder.filename().string();
  if (name.empty()) name = folder.parent_path().filename().string();
  const size_t digits = name.find_last_not_of("0123456789") + 1;  // also "checkpoint_12"
  long step = -1;
  std::from_chars(name.data() + digits, name.data() + name.size(), step);
  return step;
}

OrbaxStep step_at(const fs::path& folder) {
  OrbaxStep step{step_number(folder), folder, {}};
  if (is_item(folder)) step.items.push_back({"", folder});
  for (const fs::path& item : folders_in(folder))
    if (is_item(item) && !unfinished(item)) step.items.push_back({item.filename().string(), item});
  return step;
}

// Names of the stored arrays in the tree, keys joined by dots.
std::vector<std::string> listed_arrays(const fs::path& item) {
  const fs::path file = item / "_METADATA";
  std::vector<std::string> names;
  const SortedJson json = parse_sorted_json(read_file(file, kMostMetadata), file.string());
  const auto tree = json.is_object() ? json.find("tree_metadata") : json.end();
  if (!json.is_object() || tree == json.end() || !tree->is_object())
    fail_orbax(file, "tree_metadata is missing", "", "an object tree_metadata");
  for (const auto& [repr, leaf] : tree->items()) {
    if (!leaf.is_object() || !leaf.contains("key_metadata") || !leaf["key_metadata"].is_array())
      fail_orbax(file, "a leaf of the tree has no keys", repr.substr(0, 80), "a list key_metadata");
    const auto value = leaf.find("value_metadata");
    if (value != leaf.end() && value->is_object()) {
      if (value->value("skip_deserialize", SortedJson(false)) == true) continue;  // empty node
      if (value->value("value_type", SortedJson("")) == "string") continue;       // stored in _strings.json
    }
    std::string name;
    for (const SortedJson& part : leaf["key_metadata"]) {
      const auto key = part.is_object() ? part.find("key") : part.end();
      if (!part.is_object() || key == part.end() || !key->is_string())
        fail_orbax(file, "a key of the tree is not a string", repr.substr(0, 80));
      name += (name.empty() ? "" : ".") + key->get<std::string>();
    }
    names.push_back(std::move(name));
  }
  return names;
}

// Names of the arrays in the store, found by their zarr metadata.
std::set<std::string> stored_arrays(const KvStore& store) {
  std::set<std::string> names;
  for (const std::string& key : store.keys())
    for (const std::string_view metadata : {".zarray", "zarr.json"}) {
      if (key == metadata) names.insert("");
      if (key.size() > metadata.size() && key.ends_with(metadata) && key[key.size() - metadata.size() - 1] == '/')
        names.insert(key.substr(0, key.size() - metadata.size() - 1));
    }
  return names;
}

std::unique_ptr<KvStore> store_of(const fs::path& item) {
  if (has(item, "manifest.ocdbt")) return open_ocdbt(item);
  for (const fs::path& folder : folders_in(item))
    if (folder.filename().string().starts_with("ocdbt.process_"))
      return open_ocdbt(item);  // throws, naming what is missing
  if (has(item, "checkpoint"))
    fail_orbax(item / "checkpoint", "the msgpack format of old Orbax versions is not supported", "msgpack",
               "OCDBT or zarr folders", "load the checkpoint with its version of Orbax and save it with a newer one");
  return open_files(item);
}

}  // namespace

bool is_orbax(const fs::path& path) {
  if (!is_folder(path)) return false;
  if (is_item(path) || is_step(path)) return true;
  const std::vector<fs::path> below = folders_in(path);
  return std::any_of(below.begin(), below.end(), [](const fs::path& f) { return is_step(f) || unfinished(f); });
}

OrbaxFolder open_orbax(const fs::path& path) {
  if (!is_folder(path)) fail_orbax(path, "the folder does not exist");
  if (unfinished(path))
    fail_orbax(path, "the save was not finished", path.filename().string(), "a finished step",
               "choose an earlier step");
  OrbaxFolder folder;
  if (is_item(path) || is_step(path)) {
    folder.steps.push_back(step_at(path));
  } else {
    for (const fs::path& below : folders_in(path))
      if (unfinished(below))
        folder.unfinished.push_back(below.filename().string());
      else if (is_step(below) || (is_item(below) && step_number(below) >= 0))
        folder.steps.push_back(step_at(below));
  }
  std::stable_sort(folder.steps.begin(), folder.steps.end(),
                   [](const OrbaxStep& a, const OrbaxStep& b) { return a.step < b.step; });
  if (folder.steps.empty() && folder.unfinished.empty())
    fail_orbax(path, "the folder contains no Orbax checkpoint", "",
               "a folder of steps, a step, or an item with _METADATA");
  if (folder.steps.empty())
    fail_orbax(path, "the folder contains only unfinished saves", folder.unfinished.front(), "a finished step",
               "save the checkpoint again");
  return folder;
}

OrbaxTree::OrbaxTree(const fs::path& item) : in_database_(has(item, "manifest.ocdbt")), store_(store_of(item)) {
  std::set<std::string> names = stored_arrays(*store_);
  if (has(item, "_METADATA"))
    for (std::string& name : listed_arrays(item)) {
      if (!names.contains(name))
        fail_orbax(item, "an array of the tree is not stored", name, name + "/.zarray or " + name + "/zarr.json",
                   "copy the checkpoint again with all of its folders, ocdbt.process_* included");
    }
  for (const std::string& name : names) arrays_.push_back(read_zarr(*store_, name));
}

const ZarrArray* OrbaxTree::find(const std::string& name) const {
  const auto at = std::lower_bound(arrays_.begin(), arrays_.end(), name,
                                   [](const ZarrArray& a, const std::string& wanted) { return a.name < wanted; });
  return at != arrays_.end() && at->name == name ? &*at : nullptr;
}

}  // namespace mw::formats
