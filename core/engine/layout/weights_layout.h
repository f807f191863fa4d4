// SPDX-License-Identifier: Apache-2.0
// Weights, adapters, gradients and optimizer state as allocations and fields: whole tensors, or their shards on one
// device of a mesh with the buffers in which they are gathered and summed. Plain values; any thread.
#pragma once
#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

// Blocks of 12-bit weights that do not fit (kernels/bf16x12.h). No list has them: their number depends on the values.
inline constexpr std::string_view kOverflowBlocks = "weights that do not fit 12 bits";

// Tensors that are gathered and summed together: those of a layer, of the embeddings, or of the head.
inline constexpr int kEmbeddingsPart = -1, kHeadPart = -2;
int part_of(const mesh::PlacedTensor& tensor);

// The shard of a tensor that a device stores, and the part that it computes with. On a mesh weights are f32 or bf16.
struct ShardShape {
  int part = 0;
  bool is_embedding = false;  // which is gathered for the head, too
  bool vector = false, adapter = false, trained = false;
  bool direct = true;                 // the device computes with what it stores
  bool sums = false;                  // the stored gradient is a sum over devices
  std::int64_t stored = 0, used = 0;  // elements
};
// On a device without others: the weights in inventory order, then the tensors of the adapters.
std::vector<ShardShape> whole_tensors(const ModelShape& model);
// A, B and with DoRA the magnitudes of each adapter; then row_norms().
std::vector<ShardShape> adapter_tensors(std::span<const LoraShape> adapters);
// The norms that the magnitudes of each adapter are divided by: not trained, and as a device computes with them.
std::vector<ShardShape> row_norms(std::span<const LoraShape> adapters);

// Norms and other vectors are f32 in one buffer, with the gain of norms without weights at its end. All matrices are in
// another buffer in inventory order, so that all of it is in huge pages and a step reads it in order.
struct WeightsLayout {
  Allocation norms, matrices;
  std::vector<BufferField>
      fields;             // by inventory index, in `norms` or `matrices`; none for tensors that are not direct
  BufferField unit_norm;  // in `norms`
};
WeightsLayout lay_out_weights(const ModelShape& model, const std::function<bool(size_t)>& is_direct);

// Fields are by tensor; there is none for a tensor that has no memory there.

// Weights that are not direct; vectors in the weight type, too.
BufferLayout lay_out_shards(const ModelShape& model, std::span<const ShardShape> tensors);
BufferLayout lay_out_adapters(std::span<const ShardShape> tensors);  // f32
// Gradients of what is stored, and f32 masters of it with full training of bf16 weights.
BufferLayout lay_out_gradients(const ModelShape& model, std::span<const ShardShape> tensors);
BufferLayout lay_out_masters(const ModelShape& model, std::span<const ShardShape> tensors);
// Gradients of what the device computes with, where their sum is still to come: model-level ones grow through the whole
// step, those of layers take turns.
BufferLayout lay_out_partial_gradients(std::span<const ShardShape> tensors);
std::array<Allocation, 2> moment_allocations(std::int64_t trained_values);
// Bytes of a gathered tensor; room for those of the largest part.
std::int64_t gathered_bytes(const ModelShape& model, const ShardShape& tensor);
Allocation gathered_weights(const ModelShape& model, std::span<const ShardShape> tensors);
Allocation widened_weight(std::int64_t elements);  // a copy in f32

// The allocations of a model and its training that a device holds during a whole run.
std::vector<Allocation> model_allocations(const ModelShape& model, std::span<const ShardShape> tensors);

}  // namespace mw::engine
