// SPDX-License-Identifier: Apache-2.0
// RMS norms over rows. The forward keeps their statistics for the backward.
#pragma once
#include <cstdint>

#include "core/engine/kernels/matrix.h"
#include "core/engine/transformer/weight.h"

namespace mw::engine {

struct Transformer;

// One norm of a pass: the same values serve its forward, its recomputation and its backward.
struct RmsNorm {
  std::int64_t rows = 0, dim = 0;
  const float* x = nullptr;  // [rows, dim]
  Weight* weight = nullptr;
  float* inv = nullptr;  // [rows] inverse RMS of each row
};

void norm(Transformer& net, const RmsNorm& n, float* y);
// y = residual + the norm of x; y may be residual.
void norm_add(Transformer& net, const RmsNorm& n, const float* residual, float* y);
// Recompute y from x and the kept statistics, bit for bit.
void recompute_norm(Transformer& net, const RmsNorm& n, float* y);
void recompute_norm_add(Transformer& net, const RmsNorm& n, const float* residual, float* y);
// dx = the gradient of x, or dx += it; also adds the gradient of the weight if it is trained. With StoreMode::write dx
// may be dy.
void norm_backward(Transformer& net, const RmsNorm& n, const float* dy, float* dx, StoreMode how);

// Norms of attention heads, rows of head_dim. Without a weight (Gemma 2) they copy, and the gradient passes unchanged.
enum class NormStatistics { compute, reuse };  // reuse: recomputes y from the kept statistics, bit for bit
void head_norm(Transformer& net, const RmsNorm& n, NormStatistics statistics, float* y);
void head_norm_backward(Transformer& net, const RmsNorm& n, float* d);  // in place

}  // namespace mw::engine
