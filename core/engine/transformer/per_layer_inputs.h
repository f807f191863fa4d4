// SPDX-License-Identifier: Apache-2.0
// Per-layer inputs of Gemma 3n and 4 (PLE): a second embedding and a projection of the first one, ple_dim numbers per
// token and layer, which every layer gates into its output.
#pragma once
#include "core/engine/transformer/transformer.h"

namespace mw::engine {

void per_layer_inputs(Transformer& net, const Tokens& tokens, const float* embedded);
// x += post_ple_norm(projection(gelu(gate(x)) * the layer's input)).
void per_layer_block(Transformer& net, const PassContext& pass, int layer, LayerActivations& s, float* x);
// scratch.dx: in the gradient of the block's output, out that of its input. The gradient of the layer's input takes the
// place of the input.
void per_layer_block_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& s,
                              const float* h);
// Full training, after all layers: dx += the gradient of the embedding through the per-layer inputs.
void per_layer_inputs_backward(Transformer& net, const Tokens& tokens, const float* embedded, float* dx);

}  // namespace mw::engine
