// SPDX-License-Identifier: Apache-2.0
// How a network that computes one device's part of a model on a mesh exchanges values with the other devices. Every
// device of a group makes the same calls in the same order, each on its own thread. core/engine/distributed implements
// them.
#pragma once
#include <span>

#include "core/engine/layout/weights_layout.h"

namespace mw::engine {

// Stores weights and gradients in shards that differ from the layout in which the network computes. Layers count from
// 0; kEmbeddings: the embedding tables and the projection of the per-layer inputs; kHead: the final norm and the output
// matrix. Every device of a mesh makes the same calls in every step, also in a step without tokens.
class ShardedStorage {
 public:
  static constexpr int kEmbeddings = kEmbeddingsPart, kHead = kHeadPart;
  virtual ~ShardedStorage() = default;
  // Whether the weight (an inventory index) is stored as the network computes with it; the network allocates memory
  // for these weights only.
  virtual bool is_direct(size_t weight) const = 0;
  // Makes the weights of a layer (or kEmbeddings, kHead) readable until the next call. Phase backward: for the backward
  // pass and its recomputation.
  virtual void gather_weights(int layer, mesh::Phase phase) = 0;
  // Training: the layer's gradients hold this micro-batch's sum over the device's rows; sums them over the devices.
  virtual void reduce_gradients(int layer) = 0;
};

class CollectiveHooks {
 public:
  virtual ~CollectiveHooks() = default;
  virtual const model::Config& whole_config() const = 0;
  virtual const mesh::LocalConfig& local() const = 0;
  // Null: weights and gradients are stored as the network computes with them.
  virtual ShardedStorage* storage() const = 0;
  // The phase under which the following sums of layers are counted.
  virtual void set_phase(mesh::Phase phase) = 0;

  virtual bool splits(mesh::Block block, int layer) const = 0;
  // Sums a block's output over the axes that split the block; does nothing where it is whole.
  virtual void sum_block(mesh::Block block, int layer, std::span<float> values) = 0;
  // Sums the squares of the columns that each device has of a projection's rows; does nothing where rows are whole.
  virtual void sum_row_squares(model::Role projection, int layer, std::span<float> values) = 0;
  // Sums the gradients of the router's outputs: each device computes those of its columns of the experts.
  virtual void sum_router_gradients(int layer, std::span<float> values) = 0;

  // Sums rows that were looked up in the device's part of a table; rows of other devices are zero.
  virtual void sum_embedding_rows(std::span<float> rows) = 0;
  virtual void sum_per_layer_embedding_rows(std::span<float> rows) = 0;
  // Sums the gradients of per-layer inputs; each device computes those of its columns.
  virtual void sum_per_layer_gradients(std::span<float> values) = 0;

  virtual bool splits_vocab() const = 0;
  // Element-wise, over the parts of the vocabulary.
  virtual void max_over_vocab(std::span<float> values) = 0;
  virtual void sum_over_vocab(std::span<float> values) = 0;
  // Sums the gradient of the final norm's output.
  virtual void sum_head_gradient(std::span<float> values) = 0;
  // Gathers one row of logits of the whole vocabulary. `out` has room for the padded parts of all devices; the logits
  // of the vocabulary come first.
  virtual void gather_logits(std::span<const float> own, std::span<float> out) = 0;
};

}  // namespace mw::engine
