// SPDX-License-Identifier: Apache-2.0
// Weights, adapters, gradients and optimizer state as allocations and fields. Plain values; any thread.
#pragma once
#include <functional>
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

// Blocks of 12-bit weights that do not fit (kernels/bf16x12.h). No list has them: their number depends on the values.
inline constexpr std::string_view kOverflowBlocks = "weights that do not fit 12 bits";

// Norms and other vectors are f32 in one buffer, with the gain of norms without weights at its end. All matrices are in
// another buffer in inventory order, so that all of it is in huge pages and a step reads it in order.
struct WeightsLayout {
  Allocation norms, matrices;
  std::vector<Field> fields;  // by inventory index, in `norms` or `matrices`; none where shards store the tensor
  Field unit_norm;            // in `norms`
};
// is_stored: whether the tensor with this inventory index is stored as the network computes with it.
WeightsLayout lay_out_weights(const ModelShape& model, const std::function<bool(size_t)>& is_stored);

// f32; fields: A and B of each adapter in turn.
BufferLayout lay_out_adapters(const std::vector<LoraShape>& adapters);
// Fields as those of the adapters; with full training by inventory index, none for buffers.
BufferLayout lay_out_gradients(const ModelShape& model);
// The f32 master weights of full training of bf16 weights, with the fields of the gradients.
BufferLayout lay_out_masters(const ModelShape& model);
Allocation gradient_allocation(const ModelShape& model, Bytes bytes);
Allocation master_allocation(Bytes bytes);
// The moments of so many trained values.
std::array<Allocation, 2> moment_allocations(std::int64_t values);
// A copy of a weight in f32.
Allocation widened_weight(std::int64_t elements);

// What a model holds on one device from its loading on, and what training adds.
std::vector<Allocation> model_allocations(const ModelShape& model);
std::vector<Allocation> training_allocations(const ModelShape& model);

}  // namespace mw::engine
