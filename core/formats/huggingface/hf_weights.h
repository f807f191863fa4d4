// SPDX-License-Identifier: Apache-2.0
// Model folders of Hugging Face: config.json and single or sharded safetensors files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/safetensors/safetensors.h"
#include "core/model/inventory.h"
#include "core/options/model.h"

namespace mw::formats {

// Tensor names of HF files under every prefix that transformers writes, brought to one internal form. Any thread.

// "model.language_model.layers.0.mlp.up_proj.weight" -> "layers.0.mlp.up_proj.weight"; a name without a known prefix is
// returned unchanged.
std::string_view without_prefix(std::string_view name);

// Whether the tensor belongs to a vision or audio tower or its projector.
bool is_tower(std::string_view name);

// The tensor's name without the prefix of the config.
std::string_view suffix_of(const model::Tensor& tensor);
std::string_view suffix_of(const model::LoraTarget& target);  // "layers.3.self_attn.q_proj"

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[2, 3]"

// The weights of a folder, matched to an inventory by name under any known prefix. The constructor throws
// CHECKPOINT if a tensor is missing, has another shape, or is unexpected; it skips vision and audio towers.
// Thread-safe.
class HfWeights {
 public:
  HfWeights(const std::filesystem::path& folder, const model::TensorInventory& inventory);
  // Reads elements [first, first + out.size()) of inventory tensor `index` as f32 or bf16 bits (rounded to nearest
  // even).
  void read_f32(size_t index, std::int64_t first, std::span<float> out) const;
  void read_bf16(size_t index, std::int64_t first, std::span<std::uint16_t> out) const;
  std::span<const std::string> skipped() const { return skipped_; }  // names of skipped tensors

 private:
  struct Source {
    size_t file;
    TensorInfo info;
  };
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<Source> sources_;  // parallel to inventory.tensors()
  std::vector<std::string> skipped_;
};

// The safetensors files of a folder, sorted: model.safetensors, or the files in its index. Throws CHECKPOINT if there
// are none, or if the index names a file outside the folder.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& folder);

// Differences between the files of a folder and an inventory, by name.
struct FolderContent {
  std::string prefix;                                // of the language model's tensors: "model.language_model."
  std::vector<std::string> unexpected{}, missing{};  // names in the files; logical names
  std::int64_t embedding_rows = 0;
  int files = 0;
  bool shared_kv = true;  // K and V of layers that use those of another layer are present
  bool any_f16 = false;
};
FolderContent compare_folder(const std::filesystem::path& folder, const model::TensorInventory& inventory);

// Reads the config.json of a folder, or that file itself; the id is the name of the folder.
model::Config read_config(const std::filesystem::path& path);
// The configuration in config.json of the folder, or of the catalogue by id. Throws MISSING if neither is set, and what
// read_config() throws.
model::Config model_config(const options::Model& model);
// Writes config.json and model.safetensors (bf16 or f32) of the text-only model into an existing folder. `read` fills
// one inventory tensor at a time.
using ReadTensor = std::function<void(size_t inventory_index, std::span<float> out)>;
void write_hf_weights(const std::filesystem::path& folder, const model::Config& config,
                      const model::TensorInventory& inventory, const ReadTensor& read, TensorDType dtype);
// The bytes of its model.safetensors.
std::uint64_t hf_weights_size(const model::TensorInventory& inventory, TensorDType dtype);

}  // namespace mw::formats
