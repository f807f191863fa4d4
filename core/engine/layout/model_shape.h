// SPDX-License-Identifier: Apache-2.0
// The sizes that the engine's buffers depend on: of a model, or of the part of it that one device of a mesh computes
// with. Plain values; any thread.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/mesh/collectives/local_config.h"
#include "core/model/types.h"

namespace mw::engine {

inline constexpr int kProjections = 7;
enum class Projection { q, k, v, o, gate, up, down };
Projection projection_of(model::Role role);  // for the roles that LoRA adapts

// For inference, bf16 weights are stored losslessly in 12 bits (kernels/bf16x12.h).
enum class NetworkUse { training, inference };
// f32 and bf16: row-major. The others: in panels (kernels/packed.h).
enum class MatrixFormat { f32, bf16, packed_f32, packed, int8, bf16x12 };

struct WeightStorage {
  model::WeightType type = model::WeightType::f32;
  NetworkUse use = NetworkUse::training;
};

struct RopeSpec {
  float theta = 0, divisor = 1;  // divisor: of positions
  int head_dim = 0, pairs = 0;   // the first `pairs` of head_dim / 2 pairs rotate
  bool operator==(const RopeSpec&) const = default;
};

struct LayerShape {
  int rope = 0;                                    // index in ModelShape::rope_specs
  int group = 1;                                   // query heads of a KV head, of the whole model
  bool shares_kv = false;                          // later layers attend with its keys and values
  std::array<std::int64_t, kProjections> ranks{};  // of adapters; 0: none
};

struct LoraShape {
  int layer = 0;
  Projection projection{};
  std::int64_t in = 0, out = 0, rank = 0;
  bool dora = false;
};

struct ModelShape {
  // `local`: the device's part of a model on a mesh; `whole` is not read then.
  ModelShape(const model::Config& whole, WeightStorage storage, const mesh::LocalConfig* local = nullptr);
  void set_adapters(std::span<const mesh::AdapterShape> adapters);

  std::int64_t q_width(size_t layer) const {
    return std::int64_t{config.layers[layer].heads} * config.layers[layer].head_dim;
  }
  std::int64_t kv_width(size_t layer) const {
    return std::int64_t{config.layers[layer].kv_heads} * config.layers[layer].head_dim;
  }                                // of the keys, or of the values
  std::int64_t ple_width() const;  // columns of its per-layer inputs that a layer gates on this device
  std::int64_t all_ple() const { return static_cast<std::int64_t>(config.layers.size()) * config.ple_dim; }
  int widest_head() const;
  // Keys that a decoded token sees at most of `tokens`.
  std::int64_t visible_keys(size_t layer, std::int64_t tokens) const;
  int lowest_trained_layer() const;  // layers from here on have a backward

  // matrix_rows: rows of one of the matrices that the tensor stacks.
  MatrixFormat matrix_format(std::int64_t matrix_rows, std::int64_t cols) const;
  // Whether the loss computes 16-bit logits tile by tile: with a packed, frozen output matrix.
  bool streams_loss() const;

  model::Config config;  // the device's own sizes
  model::TensorInventory inventory;
  model::WeightType type;
  NetworkUse use;
  bool is_part;              // of a model on a mesh
  std::int64_t vocab_parts;  // devices that share the vocabulary
  std::vector<LayerShape> layer_shapes;
  std::vector<RopeSpec> rope_specs;
  std::vector<LoraShape> lora_shapes;
  bool full = false;  // every weight is trained
};

std::vector<LoraShape> lora_shapes(const model::TensorInventory& inventory,
                                   std::span<const mesh::AdapterShape> adapters);

// Whole cache lines.
std::int64_t matrix_bytes(MatrixFormat format, std::int64_t rows, std::int64_t cols);

}  // namespace mw::engine
