// SPDX-License-Identifier: Apache-2.0
// The seven projections of a layer with their LoRA branches: y = x W^T + scaling * (dropout(x) A^T) B^T.
#pragma once
#include <span>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// Input of projections: x [n,K], or the norm of x, whose statistics the forward writes to inv.
struct ProjectionInput {
  const float* x = nullptr;
  Weight* norm = nullptr;
  float* inv = nullptr;
};

// Projections of one input, into LayerActivations; with `gated` also gelu(gate) * up. Kernels that can do so compute
// all of them in one dispatch that normalises on the way; otherwise the normed input goes through scratch.norm.
void project(Transformer& net, const PassContext& pass, int layer, std::span<const Projection> which,
             const ProjectionInput& in, LayerActivations& s, float* gated = nullptr);
// dx = keep * dx + dy W + the adapter's part.
void projection_backward_input(Transformer& net, const PassContext& pass, int layer, Projection p, const float* dy,
                               float keep, float* dx);
// Adds the gradients of the weight or of the adapter.
void projection_backward_weights(Transformer& net, const PassContext& pass, int layer, Projection p,
                                 const ProjectionInput& in, const float* dy, const float* z);
// The input with its norm computed, unless projection_backward_weights() computes it on the way.
ProjectionInput recompute_input(Transformer& net, const PassContext& pass, const ProjectionInput& in);

}  // namespace mw::engine
