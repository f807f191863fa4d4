// SPDX-License-Identifier: Apache-2.0
// RMS norms over rows, x [rows, dim], with their statistics `inv` [rows] kept for the backward.
#pragma once
#include <cstdint>

#include "core/engine/transformer/weight.h"

namespace mw::engine {

struct Transformer;

void norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, float* y, float* inv);
// y = residual + the norm of x; y may be residual.
void norm_add(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight& w,
              const float* residual, float* y, float* inv);
// The norm of every head; a copy if the model has none (Gemma 2).
void head_norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight* w, float* y,
               float* inv);

// Recomputes y from x and the kept statistics, bit for bit.
void recompute_norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight& w,
                    const float* inv, float* y);
void recompute_head_norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight* w,
                         const float* inv, float* y);
// dx = keep * dx + the gradient of x, and adds the gradient of the weight if it is trained. With keep 0 dx may be dy.
void norm_backward(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, Weight& w, const float* inv,
                   const float* dy, float keep, float* dx);
// In place: from the gradient of the normed heads to that of the raw ones.
void head_norm_backward(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, Weight* w,
                        const float* inv, float* d);

}  // namespace mw::engine
