// SPDX-License-Identifier: Apache-2.0
// Shards of weights, adapters, gradients and optimizer state on one device of a mesh, and the buffers in which they
// are gathered and summed. Plain values; any thread.
#pragma once
#include <span>
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

// Tensors that are gathered and summed together: those of a layer, of the embeddings, or of the head.
inline constexpr int kEmbeddingsPart = -1, kHeadPart = -2;
int part_of(const mesh::PlacedTensor& tensor);

// What the device stores of a tensor, and what it computes with. Weights are f32 or bf16 on a mesh.
struct ShardShape {
  int part = 0;
  bool is_embedding = false;  // which is gathered for the head, too
  bool vector = false, adapter = false, trained = false;
  bool direct = false;                // the device computes with what it stores
  bool sums = false;                  // the stored gradient is a sum over devices
  std::int64_t stored = 0, used = 0;  // elements
};

// All lists of fields are by tensor; a tensor without memory there has none.

// Shards of weights that are not direct; vectors in the weight type, too.
BufferLayout lay_out_shards(const ModelShape& model, std::span<const ShardShape> tensors);
BufferLayout lay_out_adapter_shards(std::span<const ShardShape> tensors);  // f32
// Gradients of what is stored, and f32 masters of it with full training of bf16 weights.
BufferLayout lay_out_shard_gradients(const ModelShape& model, std::span<const ShardShape> tensors);
BufferLayout lay_out_shard_masters(const ModelShape& model, std::span<const ShardShape> tensors);
// Gradients of what the device computes with, where their sum is still to come: model-level ones grow through the whole
// step, those of layers take turns.
BufferLayout lay_out_partial_gradients(std::span<const ShardShape> tensors);
// Bytes of a gathered tensor; room for the largest part.
std::int64_t gathered_bytes(const ModelShape& model, const ShardShape& tensor);
Allocation gathered_weights(const ModelShape& model, std::span<const ShardShape> tensors);

// What the device holds of the model from its loading on, and what training adds.
std::vector<Allocation> shard_allocations(const ModelShape& model, std::span<const ShardShape> tensors);

}  // namespace mw::engine
