// SPDX-License-Identifier: Apache-2.0
// The element-wise and row-wise kernels, compiled once per instruction set (vector_*.cpp) and chosen at run time.
// A kernel works on the calling thread on the range that it is given; callers partition the work. Arrays are f32 unless
// stated otherwise.
#pragma once
#include <cstdint>

#include "core/engine/kernels/matrix.h"

namespace mw::engine {

struct RopeTable {  // [positions, pairs] each
  const float* cos = nullptr;
  const float* sin = nullptr;
};

struct NormGain {  // a norm multiplies by offset + w; the offset is 1 in Gemma 2 and 3, 0 in Gemma 4
  const float* w = nullptr;
  float offset = 0;
};

struct NormRows {  // x [rows, dim] and the gain of its norm
  std::int64_t rows = 0, dim = 0;
  const float* x = nullptr;
  NormGain gain{};
};

struct RopeHeads {
  std::int64_t tokens = 0, heads = 0, dim = 0;
  const int* positions = nullptr;  // [tokens]
};

// logits <- factor * exp(logits - max) - uniform, minus `scale` at the target. cap > 0: times the slope of
// softcap(cap).
struct SoftmaxGradient {
  float max = 0, cap = 0, factor = 0;
  std::int64_t target = -1;  // -1: the target is in another part of the row
  float scale = 0, uniform = 0;
};

// Element i of the mask is index first + i of the stream `key` (an Rng's key).
struct DropoutMask {
  std::uint64_t key = 0, first = 0;
  float p = 0;  // probability of a zero; kept elements are multiplied by 1 / (1 - p)
};

struct AdamWScalars {  // one step's constants, see optimizer.cpp
  float one_minus_beta1, beta2, one_minus_beta2, decay, step_size, inverse_sqrt_bias2, epsilon, gradient_scale;
};

struct VectorKernels {
  const char* name;
  float (*inverse_rms)(std::int64_t dim, const float* x, float eps);  // (mean x^2 + eps)^-1/2
  // y = x * s * gain, s = (mean x^2 + eps)^-1/2 written to inv[rows]. y may be x.
  void (*rms_norm)(const NormRows& in, float eps, float* y, float* inv);
  // y = residual + the norm of x. y may be residual.
  void (*rms_norm_add)(const NormRows& in, float eps, const float* residual, float* y, float* inv);
  // y = x * inv * gain with the inv that rms_norm wrote: bitwise the same y.
  void (*recompute_rms_norm)(const NormRows& in, const float* inv, float* y);
  void (*recompute_rms_norm_add)(const NormRows& in, const float* inv, const float* residual, float* y);
  // dx = the gradient of x, or dx += it. With StoreMode::write dx may be dy.
  void (*rms_norm_backward)(const NormRows& in, const float* inv, const float* dy, float* dx, StoreMode how);
  // dw[c] += sum over rows of dy * x * inv, for the columns c.
  void (*rms_norm_weight)(const NormRows& in, const float* inv, const float* dy, ColumnRange columns, float* dw);
  // Rotates pairs (i, i + dim/2) of every head of x [tokens, heads, dim] in place; sign -1 is the backward.
  void (*rope)(const RopeHeads& heads, RopeTable table, float sign, float* x);
  void (*geglu)(std::int64_t n, const float* gate, const float* up, float* out);
  // In place: gate <- d gate, up <- d up, d_out <- gelu(gate) * up.
  void (*geglu_backward)(std::int64_t n, float* gate, float* up, float* d_out);
  float (*max)(std::int64_t n, const float* x);  // n > 0
  // s[0,n): softmax over [lo, hi), zero elsewhere. Returns log(sum(exp)).
  float (*softmax)(std::int64_t n, std::int64_t lo, std::int64_t hi, float* s);
  // s <- exp(s - lse) in [lo, hi), zero elsewhere: the probabilities that softmax() wrote.
  void (*recompute_softmax)(std::int64_t n, std::int64_t lo, std::int64_t hi, float lse, float* s);
  // p <- p * (dp - delta)
  void (*softmax_backward)(std::int64_t n, float* p, const float* dp, float delta);
  // Returns -log softmax(logits)[target]; with scale != 0 also logits <- scale * (softmax - onehot(target)). cap > 0:
  // the logits are outputs of softcap(cap), and the gradient is that of its inputs.
  double (*cross_entropy)(std::int64_t n, float* logits, std::int64_t target, float cap, float scale);
  // Cross-entropy of a row whose other columns are on other devices: the sum of exp(logits - max), and the gradient.
  double (*exp_sum)(std::int64_t n, float max, const float* logits);
  void (*softmax_gradient)(std::int64_t n, const SoftmaxGradient& gradient, float* logits);
  void (*softcap)(std::int64_t n, float cap, float* x);                           // x <- cap * tanh(x / cap)
  void (*softcap_backward)(std::int64_t n, float cap, const float* y, float* d);  // y: what softcap wrote
  void (*scale)(std::int64_t n, float factor, float* x);
  void (*add)(std::int64_t n, const float* x, float scale, float* y);  // y += scale * x
  double (*dot)(std::int64_t n, const float* x, const float* y);       // accumulates in f64
  void (*widen)(std::int64_t n, const std::uint16_t* bf16, float* out);
  void (*narrow)(std::int64_t n, const float* in, std::uint16_t* bf16);  // round to nearest even
  // Columns of C[m, n] = alpha * A[m, k] B[n, k]^T + beta * C, m small, beta 0 or 1: B is read once.
  void (*dot_rows)(const GemmShape& shape, const float* a, const float* b, float* c, GemmScaling scaling,
                   ColumnRange columns);
  // o[m, n] = p[m, k] v[k, n], or o += it, m small: v is read once. The bits do not depend on how k is split over
  // calls.
  void (*weighted_sums)(const GemmShape& shape, MatrixView p, const float* v, float* o, StoreMode how);
  // out = scaled x where the mask keeps it and 0 elsewhere, or out += it.
  void (*dropout)(std::int64_t n, const DropoutMask& mask, const float* x, float* out, StoreMode how);
  void (*adamw)(std::int64_t n, const AdamWScalars& s, const float* gradient, float* value, float* m, float* v);
};

// The best set that this processor runs.
const VectorKernels& vector_kernels();

const VectorKernels& vector_kernels_avx512();
const VectorKernels& vector_kernels_avx2();
const VectorKernels& vector_kernels_base();

}  // namespace mw::engine
