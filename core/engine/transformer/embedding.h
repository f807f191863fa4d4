// SPDX-License-Identifier: Apache-2.0
// Lookups in embedding tables of which the device may hold a range of rows, and per-layer inputs.
#pragma once
#include "core/engine/transformer/tokens.h"
#include "core/engine/transformer/transformer.h"
#include "core/engine/transformer/weight.h"
#include "core/mesh/collectives/local_config.h"

namespace mw::engine {

// The row of a token in a table of which the device holds the rows `own`; zeros for other tokens.
void look_up_row(const Weight& table, const mesh::IndexInterval& own, int id, float* out);
// x [tokens, dim]: scaled embeddings.
void embed(Transformer& net, const Tokens& tokens, float* x);
// Adds the gradient of a lookup to the table's gradient.
void add_embedding_gradient(Transformer& net, const Tokens& tokens, const float* dx, float factor, Weight& table,
                            const mesh::IndexInterval& own);

// Per-layer inputs of Gemma 3n and 4 (PLE): a second embedding and a projection of the first one, ple_dim numbers per
// token and layer, which every layer gates into its output.
void per_layer_inputs(Transformer& net, const Tokens& tokens, const float* embedded);
// x += post_ple_norm(projection(gelu(gate(x)) * the layer's input)).
void per_layer_block(Transformer& net, const PassContext& pass, int layer, float* x);
// Replaces the gradient of the block's output in scratch.dx by that of its input, and the layer's input in step.ple by
// its gradient.
void per_layer_block_backward(Transformer& net, const PassContext& pass, int layer, const float* h);
// Full training, after all layers: dx += the gradient of the embedding through the per-layer inputs.
void per_layer_inputs_backward(Transformer& net, const Tokens& tokens, const float* embedded, float* dx);

}  // namespace mw::engine
