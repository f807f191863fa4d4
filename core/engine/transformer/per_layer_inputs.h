// SPDX-License-Identifier: Apache-2.0
// Per-layer inputs of Gemma 3n and 4 (PLE): a second embedding and a projection of the first one, ple_dim numbers per
// token and layer, which every layer gates into its output.
#pragma once
#include "core/engine/transformer/transformer.h"

namespace mw::engine {

void per_layer_inputs(Transformer& net, const Tokens& tokens, const float* embedded);
// x += post_ple_norm(projection(gelu(gate(x)) * the layer's input)).
void per_layer_block(Transformer& net, const PassContext& pass, int layer, float* x);
// Replaces the gradient of the block's output in scratch.dx by that of its input, and the layer's input in step.ple by
// its gradient.
void per_layer_block_backward(Transformer& net, const PassContext& pass, int layer, const float* h);
// Full training, after all layers: dx += the gradient of the embedding through the per-layer inputs.
void per_layer_inputs_backward(Transformer& net, const Tokens& tokens, const float* embedded, float* dx);

}  // namespace mw::engine
