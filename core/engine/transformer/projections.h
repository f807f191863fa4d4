// SPDX-License-Identifier: Apache-2.0
// The seven projections of a layer with their LoRA branches: y = x W^T + scaling * (dropout(x) A^T) B^T, and with DoRA
// times m / |W + scaling B A|, by output.
#pragma once
#include <span>

#include "core/engine/runtime/device.h"
#include "core/engine/transformer/lora.h"
#include "core/engine/transformer/transformer.h"
#include "core/engine/transformer/weight.h"

namespace mw::engine {

// Input of projections: x [n,K], or its norm if there is one; the forward writes the norm's statistics to inv [n].
struct ProjectionInput {
  const float* x = nullptr;
  Weight* norm = nullptr;
  float* inv = nullptr;
};

// A projection of one layer.
struct LayerProjection {
  int layer = 0;
  Projection projection{};
};

// Computes projections of one input into the layer's activations; with `gated` also gelu(gate) * up. Kernels that can
// do so compute all of them in one dispatch that includes the norm; otherwise the normed input goes through
// scratch.norm.
void project(Transformer& net, const PassContext& pass, int layer, std::span<const Projection> projections,
             const ProjectionInput& in, float* gated = nullptr);
// dx = dy W + the adapter's part, or dx += it.
void projection_backward_input(Transformer& net, const PassContext& pass, LayerProjection which, const float* dy,
                               float* dx, StoreMode how);
// Adds the gradients of the weight or of the adapter.
void projection_backward_weights(Transformer& net, const PassContext& pass, LayerProjection which,
                                 const ProjectionInput& in, const float* dy);
// The input with its norm recomputed, or `in` itself if projection_backward_weights() computes the norm.
ProjectionInput recompute_input(Transformer& net, const PassContext& pass, const ProjectionInput& in);

// --- The part of DoRA (arXiv 2402.09353) that LoRA does not have, as PEFT computes it. The norm of a row counts as a
// constant in gradients. All functions take adapters with magnitudes. ---

// Writes a.norm, in the order of the rows whatever the number of threads.
void update_row_norms(Device& device, const Weight& w, const Adapter& a);
// Compute a.norm in two steps on a device that has some columns of the rows: write_row_squares() writes the sums of
// their squares to a.norm, and take_square_roots() turns the sums over all devices into norms.
void write_row_squares(Device& device, const Weight& w, const Adapter& a);
void take_square_roots(const Adapter& a);
// |W| of one row of W, as update_row_norms() computes it while B is zero.
float initial_magnitude(std::span<const float> row);

struct OutputRows {  // [rows, out]
  std::int64_t rows = 0;
  const float* x = nullptr;
  float* y = nullptr;  // may be x
};
// y = x * m / norm, in columns [begin, end). On the calling thread.
void scale_outputs(const Adapter& a, const OutputRows& rows, ColumnRange columns);
void scale_outputs(Device& device, const Adapter& a, const OutputRows& rows);  // all columns, on the device's threads

// dm += sum over the rows of dy * y / norm. y [rows, out]: before scale_outputs(); dy: of what that wrote.
void add_magnitude_gradient(Device& device, const Adapter& a, std::int64_t rows, const float* dy, const float* y);

}  // namespace mw::engine
