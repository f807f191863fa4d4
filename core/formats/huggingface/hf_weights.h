// SPDX-License-Identifier: Apache-2.0
// A Hugging Face model folder (config.json, single or sharded safetensors) by inventory.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/formats/safetensors/safetensors.h"
#include "core/model/inventory.h"

namespace mw::formats {

// The weights of a folder, checked against the inventory: every tensor present with its shape, any accepted prefix
// (hf_names.h), unexpected language-model tensors refused, vision/audio towers skipped and counted.
class HfWeights {
 public:
  HfWeights(const std::filesystem::path& folder, const model::TensorInventory& inventory);
  // Elements [first, first+out.size()) of inventory tensor `index`, as f32 / as bf16 bits (rounded to nearest even).
  void read_f32(size_t index, std::int64_t first, std::span<float> out) const;
  void read_bf16(size_t index, std::int64_t first, std::span<std::uint16_t> out) const;
  std::span<const std::string> skipped() const { return skipped_; }

 private:
  struct Source {
    size_t file;
    TensorInfo info;
  };
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<Source> sources_;  // parallel to inventory.tensors()
  std::vector<std::string> skipped_;
};

// The safetensors files that hold a folder's weights: the one, or those that its index names (inside the folder only),
// each once, by name.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& folder);

// What the files of a folder hold against the inventory, by name: for checks, nothing is refused but what no file is.
struct FolderContent {
  std::string prefix;                                // of the language model: "model.language_model."
  std::vector<std::string> unexpected{}, missing{};  // names in the files; logical names
  std::int64_t embedding_rows = 0;
  int files = 0;
  bool shared_kv = true;  // K and V of layers that borrow them are there
  bool any_f16 = false;
};
FolderContent compare_folder(const std::filesystem::path& folder, const model::TensorInventory& inventory);

// A folder's config.json, or that file itself; id = name of the folder.
model::Config read_config(const std::filesystem::path& path);
// Writes config.json + model.safetensors (bf16 or f32) into an existing folder. `read` fills in an inventory tensor;
// one is whole at a time.
using ReadTensor = std::function<void(size_t inventory_index, std::span<float> out)>;
void write_hf_weights(const std::filesystem::path& folder, const model::Config& config,
                      const model::TensorInventory& inventory, const ReadTensor& read, DType dtype);

}  // namespace mw::formats
