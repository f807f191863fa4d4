// SPDX-License-Identifier: Apache-2.0
// Orbax checkpoints: a root of numbered steps, items in a step, a tree of arrays in an item; versions
// 0 and 1, with OCDBT or with plain files. Nothing in a file is trusted. Reading is const, from any thread.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/orbax/zarr.h"

namespace mw::formats {

struct OrbaxItem {
  std::string name;  // "model_params"; empty: the arrays lie in the step's folder itself
  std::filesystem::path folder;
};
struct OrbaxStep {
  long step = -1;  // -1: the folder's name is no number
  std::filesystem::path folder;
  std::vector<OrbaxItem> items;
};
// `path`: a root, a step, or an item. Steps ascending; unfinished ones (…orbax-checkpoint-tmp…) are left out and named
// in `unfinished`. Throws Error ORBAX where nothing of that kind is.
struct OrbaxFolder {
  std::vector<OrbaxStep> steps;
  std::vector<std::string> unfinished;
};
OrbaxFolder open_orbax(const std::filesystem::path& path);
bool is_orbax(const std::filesystem::path& path);  // a folder of that kind

// An item's arrays, as _METADATA and the store name them. Every listed array is there, or Error.
class OrbaxTree {
 public:
  explicit OrbaxTree(const std::filesystem::path& item);
  const std::vector<ZarrArray>& arrays() const { return arrays_; }  // by name
  const ZarrArray* find(const std::string& name) const;
  std::vector<float> read_floats(const ZarrArray& array) const { return formats::read_floats(*store_, array); }
  Blob read_values(const ZarrArray& array) const { return formats::read_values(*store_, array); }
  const std::filesystem::path& folder() const { return store_->folder(); }
  bool in_database() const { return in_database_; }  // OCDBT; else a folder an array

 private:
  bool in_database_;
  std::unique_ptr<KvStore> store_;
  std::vector<ZarrArray> arrays_;
};

}  // namespace mw::formats
