// SPDX-License-Identifier: Apache-2.0
// Logits of a model that is never in memory as a whole: layer by layer from the files of a Hugging Face folder, with or
// without an adapter, then the head in pieces of the vocabulary; all in f32. One thread drives it.
#pragma once
#include <filesystem>
#include <vector>

#include "core/base/units.h"
#include "core/engine/transformer/network.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/model.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::train {

class SlicedModel {
 public:
  static constexpr Bytes kHead{128 << 20};
  // Whether layers can be run one after another: none reads what another one keeps, or inputs of its own (E2B, E4B).
  static bool possible(const model::Config& config);
  // What the largest layer with the head's largest piece needs, about.
  static Bytes memory(const model::Config& config);

  // Throws what reading a folder does. The adapter outlives it. `head`: of a piece of the head.
  SlicedModel(const std::filesystem::path& folder, const formats::Adapter* adapter, int threads, Bytes head = kHead);
  const model::Config& config() const { return config_; }
  // [rows*len, vocab] of a batch without padding. What `progress` throws ends it.
  std::vector<float> logits(const engine::TokenBatch& batch, const Progress& progress = {}) const;

 private:
  struct Slice;
  // Rows of the embedding that a slice has in place of the vocabulary.
  using Rows = std::vector<int>;
  Slice slice(int layer, Rows rows) const;

  model::Config config_;
  model::TensorInventory inventory_;
  formats::HfWeights weights_;
  const formats::Adapter* adapter_;
  int threads_;
  Bytes head_;
};

}  // namespace mw::train
