// SPDX-License-Identifier: Apache-2.0
// What the engine refuses before it computes with it, as Errors that name the place. Any thread.
#pragma once
#include <cstdint>
#include <span>

#include "core/model/inventory.h"

namespace mw::engine {

// A model that this engine does not run, or whose sizes cannot be.
void check_model(const model::Config& config);

// More tokens than the model has positions.
void check_context(const model::Config& config, std::int64_t tokens);

// NaN or infinity among elements [first, first + size) of a tensor; bits: bf16.
void check_finite(const model::Tensor& tensor, std::int64_t first, std::span<const float> values);
void check_finite(const model::Tensor& tensor, std::int64_t first, std::span<const std::uint16_t> bits);

}  // namespace mw::engine
