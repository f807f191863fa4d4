// SPDX-License-Identifier: Apache-2.0
// Checks of models, lengths and weights before they are computed with; errors name the place. Any thread.
#pragma once
#include <cstdint>
#include <span>

#include "core/model/inventory.h"

namespace mw::engine {

// Throws Error ARCH for a model that this engine does not run or whose sizes are invalid.
void check_model(const model::Config& config);

// Throws Error CONTEXT for more tokens than the model has positions.
void check_context(const model::Config& config, std::int64_t tokens);

// Throws Error WEIGHTS for NaN or infinity among elements [first, first + size) of a tensor; bits: bf16.
void check_finite(const model::Tensor& tensor, std::int64_t first, std::span<const float> values);
void check_finite(const model::Tensor& tensor, std::int64_t first, std::span<const std::uint16_t> bits);

}  // namespace mw::engine
