// SPDX-License-Identifier: Apache-2.0
// LoRA adapters in the format of PEFT: adapter_config.json and adapter_model.safetensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/pattern.h"
#include "core/model/inventory.h"

namespace mw::formats {

// Resolves rank_pattern and alpha_pattern like PEFT: the first key whose regular expression "(.*\.)?(KEY)" matches the
// whole module path determines the value. Thread-safe.
class PeftPatterns {
 public:
  PeftPatterns() = default;
  // Throws ADAPTER, naming `file` and the config key `place`, for invalid or too long expressions.
  PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
               const std::string& place);
  // Throws ADAPTER if matching takes too long.
  double resolve(const std::string& module, double fallback) const;

 private:
  struct Entry {
    std::string key;
    Pattern expression;
    double value;
  };
  std::string file_, place_;
  std::vector<Entry> patterns_;
};

// One adapted linear layer. a: [rank, in], b: [out, rank], row-major; m: [out], magnitudes of DoRA, else empty.
struct AdapterModule {
  model::LoraTarget target;
  int rank = 0;
  float alpha = 0;
  std::vector<float> a, b, m{};
};
struct PeftAdapter {
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
void write_peft(const std::filesystem::path& folder, const PeftAdapter& adapter,
                const model::TensorInventory& inventory);
// The bytes of the adapter_model.safetensors that write_peft() makes of adapters with these ranks, f32.
struct AdapterRank {
  model::LoraTarget target;
  int rank = 0;
  bool dora = false;
};
std::uint64_t peft_file_size(std::span<const AdapterRank> adapters);
// Throws ADAPTER for missing, unexpected or misshapen tensors, and for features other than LoRA and DoRA: bias,
// embeddings, modules_to_save.
PeftAdapter read_peft(const std::filesystem::path& folder, const model::TensorInventory& inventory);

}  // namespace mw::formats
