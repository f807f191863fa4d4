// SPDX-License-Identifier: Apache-2.0
// Computes f32 logits of a model that does not fit into memory: loads one layer at a time from a Hugging Face folder,
// with or without an adapter, then the output head in pieces of the vocabulary. Use on one thread.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/train/model.h"

namespace mw::engine {
struct TokenBatch;
}

namespace mw::train {

enum class AdapterUse { none, beside, folded };  // folded: its product is added to the weights in f32

class SlicedModel {
 public:
  static constexpr Bytes kHead{128 << 20};
  // Whether the layers are independent: no shared K and V, no per-layer inputs (E2B, E4B).
  static bool possible(const model::Config& config);
  // Approximate memory of the largest layer and the largest piece of the head.
  static Bytes memory(const model::Config& config);

  // `adapter` (or null) must outlive the object. `head` is the size of a piece of the head. Throws like HfWeights.
  SlicedModel(const std::filesystem::path& folder, const formats::PeftAdapter* adapter, int threads,
              Bytes head = kHead);
  ~SlicedModel();
  const model::Config& config() const { return config_; }
  // Logits [rows * len, vocab] of a batch without padding, for each use of the adapter in the order of AdapterUse;
  // every layer is read once for all of them. Exceptions of `progress` abort it. `on_hidden` gets the hidden states
  // [rows * len, dim] behind each layer in turn; `use`: index in `uses`.
  using OnHidden = std::function<void(size_t use, const std::vector<float>& hidden)>;
  std::vector<std::vector<float>> logits(const engine::TokenBatch& batch, std::span<const AdapterUse> uses,
                                         const CountProgress& progress = {}, const OnHidden& on_hidden = {}) const;
  // With the adapter beside the weights, if there is one.
  std::vector<float> logits(const engine::TokenBatch& batch) const;

 private:
  struct Slice;
  struct Product;  // computes the adapter's product
  // The rows of the embedding in a slice.
  using Rows = std::vector<int>;
  Slice slice(int layer, Rows rows) const;  // without the adapter
  void use_adapter(Slice& slice, int layer, AdapterUse use) const;
  void add_product(const model::Tensor& tensor, int layer, std::int64_t first, std::span<float> values) const;

  model::Config config_;
  model::TensorInventory inventory_;
  formats::HfWeights weights_;
  const formats::PeftAdapter* adapter_;
  int threads_;
  Bytes head_;
  std::unique_ptr<Product> product_;  // null without an adapter
};

}  // namespace mw::train
