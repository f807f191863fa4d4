// SPDX-License-Identifier: Apache-2.0
// Mixture of experts (Gemma4TextExperts of HF transformers): tokens are sorted by expert, each expert computes its
// rows, and the results are added in order of experts.
#pragma once
#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// Writes the sum of the experts' outputs to the layer's activations.
void experts_block(Transformer& net, const PassContext& pass, int layer, const float* h);
// Adds to scratch.dx the gradient of h. The gradient of the experts' output is in scratch.d_experts.
void experts_backward(Transformer& net, const PassContext& pass, int layer, const float* h);

}  // namespace mw::engine
