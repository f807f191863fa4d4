// SPDX-License-Identifier: Apache-2.0
// Orbax checkpoints: a root folder with numbered steps, items in a step, a tree of arrays in an item. Versions 0 and 1,
// stored in OCDBT or plain files. Thread-safe.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/orbax/zarr.h"

namespace mw::formats {

struct OrbaxItem {
  std::string name;  // "model_params"; empty if the step's folder is the item
  std::filesystem::path folder;
};
struct OrbaxStep {
  long step = -1;  // -1: the name of the folder contains no number
  std::filesystem::path folder;
  std::vector<OrbaxItem> items;
};
struct OrbaxFolder {
  std::vector<OrbaxStep> steps;         // ascending
  std::vector<std::string> unfinished;  // names of unfinished saves (...orbax-checkpoint-tmp...)
};
// `path` is a root, a step or an item. Throws ORBAX if it is none of these.
OrbaxFolder open_orbax(const std::filesystem::path& path);
bool is_orbax(const std::filesystem::path& path);

// The arrays of an item. The constructor throws ORBAX if an array listed in _METADATA is not stored.
class OrbaxTree {
 public:
  explicit OrbaxTree(const std::filesystem::path& item);
  const std::vector<ZarrArray>& arrays() const { return arrays_; }  // by name
  const ZarrArray* find(const std::string& name) const;
  std::vector<float> read_floats(const ZarrArray& array) const { return formats::read_floats(*store_, array); }
  Blob read_values(const ZarrArray& array) const { return formats::read_values(*store_, array); }
  const std::filesystem::path& folder() const { return store_->folder(); }
  bool in_database() const { return in_database_; }  // stored in OCDBT; else one folder per array

 private:
  bool in_database_;
  std::unique_ptr<KvStore> store_;
  std::vector<ZarrArray> arrays_;
};

}  // namespace mw::formats
