// SPDX-License-Identifier: Apache-2.0
// The output head, tied to the embedding, and the cross-entropy loss. Only rows with a target are computed, a chunk of
// them at a time, and the gradients of logits overwrite the logits.
#pragma once
#include <span>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// Logits of the given rows of x [n,D]; on a mesh, of the device's part of the vocabulary.
void head_logits(Transformer& net, const float* x, std::span<const int> rows, float* logits);
// With StepGoal::gradients, also writes gradient_scale times the gradient of x to scratch.dx.
LossSum compute_loss(Transformer& net, const Tokens& tokens, const float* x, const StepOptions& options, StepGoal goal);

}  // namespace mw::engine
