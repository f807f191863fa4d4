// SPDX-License-Identifier: Apache-2.0
// The MLP block of a layer: the gated MLP, the experts beside it and the per-layer input behind it, where a layer has
// them.
#pragma once
#include <cstdint>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// out = h + post_ffw_norm(down(gelu(gate(pre_ffw_norm(h))) * up(pre_ffw_norm(h)))), then the per-layer input and the
// layer's scalar.
void mlp_block(Transformer& net, const PassContext& pass, int layer, LayerActivations& s, const float* h, float* out);
// scratch.dx: in the gradient of the output, out that of h.
void mlp_block_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& s, const float* h);
// gated = gelu(s.g) * s.u
void gate_activation(Transformer& net, std::int64_t count, const LayerActivations& s, float* gated);

}  // namespace mw::engine
