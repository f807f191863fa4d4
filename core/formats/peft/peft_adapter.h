// SPDX-License-Identifier: Apache-2.0
// LoRA adapters in PEFT's format: adapter_config.json and adapter_model.safetensors.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/model/inventory.h"

namespace mw::formats {

// PEFT LoRA adapter (peft/src/peft/tuners/lora). Values are f32, A [r,in], B [out,r].
struct AdapterModule {
  model::LoraTarget target;
  int rank = 0;
  float alpha = 0;
  std::vector<float> a, b;
};
struct Adapter {
  int rank = 8;
  float alpha = 8, dropout = 0;
  bool rslora = false;
  std::string base_model{};            // base_model_name_or_path
  std::vector<std::string> targets{};  // module suffixes, e.g. q_proj
  std::vector<std::pair<std::string, int>> rank_pattern{};
  std::vector<std::pair<std::string, float>> alpha_pattern{};
  std::vector<AdapterModule> modules{};
};
// `inventory`: of the model it adapts; where the adapter has a module in some layers only, target_modules names them.
void write_peft(const std::filesystem::path& folder, const Adapter& adapter, const model::TensorInventory& inventory);
// Throws Error for missing, extra or misshapen tensors and for DoRA, bias, embeddings, modules_to_save (named, not
// ignored).
Adapter read_peft(const std::filesystem::path& folder, const model::TensorInventory& inventory);

}  // namespace mw::formats
