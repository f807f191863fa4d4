// SPDX-License-Identifier: Apache-2.0
// The output head, tied to the embedding, and the cross-entropy loss. Only rows with a target are computed, some of
// them at a time; gradients of logits take the place of the logits.
#pragma once
#include <span>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// Logits of the given rows of x [n,D]; on a mesh the device's part of the vocabulary.
void head_logits(Transformer& net, const float* x, std::span<const int> rows, float* logits);
// With StepGoal::gradients scratch.dx becomes the gradient of x times gradient_scale.
LossSum compute_loss(Transformer& net, const Tokens& tokens, const float* x, const StepOptions& options, StepGoal goal);

}  // namespace mw::engine
