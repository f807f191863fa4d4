// SPDX-License-Identifier: Apache-2.0
// LoRA adapters in the format of PEFT: adapter_config.json and adapter_model.safetensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/model/inventory.h"

namespace mw::formats {

// One adapted linear layer. a: [rank, in], b: [out, rank], row-major; m: [out], magnitudes of DoRA, else empty.
struct AdapterModule {
  model::LoraTarget target;
  int rank = 0;
  float alpha = 0;
  std::vector<float> a, b, m{};
};
struct Adapter {
  int rank = 8;
  float alpha = 8, dropout = 0;
  bool rslora = false;
  bool dora = false;
  std::string base_model{};            // base_model_name_or_path
  std::vector<std::string> targets{};  // suffixes of module names, e.g. q_proj
  std::vector<std::pair<std::string, int>> rank_pattern{};
  std::vector<std::pair<std::string, float>> alpha_pattern{};
  std::vector<AdapterModule> modules{};
};
// "base_model.model.<module>.lora_magnitude_vector"
std::string peft_magnitude(const model::LoraTarget& target);
// `inventory` is that of the base model. If a module is adapted in some layers only, target_modules lists the layers.
void write_peft(const std::filesystem::path& folder, const Adapter& adapter, const model::TensorInventory& inventory);
// The bytes of the adapter_model.safetensors that write_peft() makes of adapters with these ranks, f32.
struct AdapterRank {
  model::LoraTarget target;
  int rank = 0;
  bool dora = false;
};
std::uint64_t peft_file_size(std::span<const AdapterRank> adapters);
// Throws ADAPTER for missing, unexpected or misshapen tensors, and for features other than LoRA and DoRA: bias,
// embeddings, modules_to_save.
Adapter read_peft(const std::filesystem::path& folder, const model::TensorInventory& inventory);

}  // namespace mw::formats
