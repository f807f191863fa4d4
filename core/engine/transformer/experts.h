// SPDX-License-Identifier: Apache-2.0
// Mixture of experts (Gemma4TextExperts of HF transformers): tokens are sorted by expert, each expert computes its
// rows, and the results are added in order of experts.
#pragma once
#include "core/engine/transformer/transformer.h"

namespace mw::engine {

void experts_block(Transformer& net, const PassContext& pass, int layer, LayerActivations& s,
                   const float* h);  // to s.experts
// Adds to scratch.dx the gradient through s.experts, whose own gradient is scratch.d_experts.
void experts_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& s, const float* h);

}  // namespace mw::engine
