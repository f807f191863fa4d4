// SPDX-License-Identifier: Apache-2.0
// The MLP block of a layer: the gated MLP, and the experts and the per-layer input of layers that have them.
#pragma once

#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// out = h + post_ffw_norm(down(gelu(gate(pre_ffw_norm(h))) * up(pre_ffw_norm(h)))), then the per-layer input and the
// layer's scalar.
void mlp_block(Transformer& net, const PassContext& pass, int layer, const float* h, float* out);
// Replaces the gradient of the output in scratch.dx by that of h.
void mlp_block_backward(Transformer& net, const PassContext& pass, int layer, const float* h);
// gated = gelu(gate) * up, from the layer's activations.
void gate_activation(Transformer& net, const PassContext& pass, int layer, float* gated);

// Mixture of experts (Gemma4TextExperts of HF transformers): tokens are sorted by expert, each expert computes its
// rows, and the results are added in order of experts. Writes the sum of the experts' outputs to the layer's
// activations.
void experts_block(Transformer& net, const PassContext& pass, int layer, const float* h);
// Adds to scratch.dx the gradient of h. The gradient of the experts' output is in scratch.d_experts.
void experts_backward(Transformer& net, const PassContext& pass, int layer, const float* h);

}  // namespace mw::engine
