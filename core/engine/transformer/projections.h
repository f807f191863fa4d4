// SPDX-License-Identifier: Apache-2.0
// The seven projections of a layer with their LoRA branches: y = x W^T + scaling * (dropout(x) A^T) B^T, and with DoRA
// times m / |W + scaling B A|, by output.
#pragma once
#include <span>

#include "core/engine/transformer/transformer.h"

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
                               float* dx, Store how);
// Adds the gradients of the weight or of the adapter.
void projection_backward_weights(Transformer& net, const PassContext& pass, LayerProjection which,
                                 const ProjectionInput& in, const float* dy);
// The input with its norm recomputed, or `in` itself if projection_backward_weights() computes the norm.
ProjectionInput recompute_input(Transformer& net, const PassContext& pass, const ProjectionInput& in);

}  // namespace mw::engine
