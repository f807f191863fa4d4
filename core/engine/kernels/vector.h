// SPDX-License-Identifier: Apache-2.0
// The element-wise and row-wise kernels, compiled once per instruction set (vector_*.cpp) and chosen at run time.
// Each works on the range it is given, on the calling thread; the caller partitions. All arrays f32 unless said.
#pragma once
#include <cstdint>

namespace mw::engine {

struct RopeTable {  // [positions, pairs] each
  const float* cos = nullptr;
  const float* sin = nullptr;
};

struct NormGain {  // a norm multiplies by offset + w; the offset is 1 in Gemma 2 and 3, 0 in Gemma 4
  const float* w = nullptr;
  float offset = 0;
};

struct AdamWScalars {              // one step's constants, see optimizer.cpp
  float new1, beta2, new2, decay,  // new: 1 - beta
      step_size, inverse_sqrt_bias2, epsilon, gradient_scale;
};

struct VectorKernels {
  const char* name;
  float (*inverse_rms)(std::int64_t dim, const float* x, float eps);  // (mean x^2 + eps)^-1/2
  // y = x * s * gain, s = (mean x^2 + eps)^-1/2 written to inv[rows]. y may be x.
  void (*rms_norm)(std::int64_t rows, std::int64_t dim, const float* x, NormGain g, float eps, float* y, float* inv);
  // y = residual + the same. y may be residual.
  void (*rms_norm_add)(std::int64_t rows, std::int64_t dim, const float* x, NormGain g, float eps,
                       const float* residual, float* y, float* inv);
  // y = x * inv * gain again from a kept inv: bitwise what rms_norm wrote.
  void (*recompute_rms_norm)(std::int64_t rows, std::int64_t dim, const float* x, NormGain g, const float* inv,
                             float* y);
  void (*recompute_rms_norm_add)(std::int64_t rows, std::int64_t dim, const float* x, NormGain g, const float* inv,
                                 const float* residual, float* y);
  // dx = keep * dx + the gradient (keep 0 or 1). With keep 0 dx may be dy.
  void (*rms_norm_backward)(std::int64_t rows, std::int64_t dim, const float* x, NormGain g, const float* inv,
                            const float* dy, float keep, float* dx);
  // dw[c] += sum over rows of dy * x * inv, for columns [begin, end).
  void (*rms_norm_weight)(std::int64_t rows, std::int64_t dim, const float* x, const float* inv, const float* dy,
                          std::int64_t begin, std::int64_t end, float* dw);
  // Rotates pairs (i, i + dim/2) of every head in place; sign -1 is the backward.
  void (*rope)(std::int64_t rows, std::int64_t heads, std::int64_t dim, const int* positions, RopeTable table,
               float sign, float* x);
  void (*geglu)(std::int64_t n, const float* gate, const float* up, float* out);
  // In place: gate <- d gate, up <- d up, d_out <- gelu(gate) * up.
  void (*geglu_backward)(std::int64_t n, float* gate, float* up, float* d_out);
  float (*highest)(std::int64_t n, const float* x);  // n > 0
  // s[0,n): softmax over [lo, hi), zero elsewhere. Returns log(sum(exp)).
  float (*softmax)(std::int64_t n, std::int64_t lo, std::int64_t hi, float* s);
  // s <- exp(s - lse) in [lo, hi), zero elsewhere: the probabilities again.
  void (*recompute_softmax)(std::int64_t n, std::int64_t lo, std::int64_t hi, float lse, float* s);
  // p <- p * (dp - delta)
  void (*softmax_backward)(std::int64_t n, float* p, const float* dp, float delta);
  // Returns -log softmax(logits)[target]; with scale != 0 also logits <- scale * (softmax - onehot(target)). cap > 0:
  // the logits have gone through softcap(cap), and the gradient goes back through it.
  double (*cross_entropy)(std::int64_t n, float* logits, std::int64_t target, float cap, float scale);
  // The same in parts, where others have the rest of the row: the sum of exp(logits - max), and logits <- factor *
  // exp(logits - max), at the target (-1: not here) less scale, back through the cap.
  double (*exp_sum)(std::int64_t n, float max, const float* logits);
  void (*softmax_gradient)(std::int64_t n, float max, float cap, float factor, std::int64_t target, float scale,
                           float* logits);
  void (*softcap)(std::int64_t n, float cap, float* x);                           // x <- cap * tanh(x / cap)
  void (*softcap_backward)(std::int64_t n, float cap, const float* y, float* d);  // y: what softcap wrote
  void (*scale)(std::int64_t n, float factor, float* x);
  void (*add)(std::int64_t n, const float* x, float scale, float* y);  // y += scale * x
  double (*dot)(std::int64_t n, const float* x, const float* y);       // f64 across vectors of 16
  void (*widen)(std::int64_t n, const std::uint16_t* bf16, float* out);
  void (*narrow)(std::int64_t n, const float* in, std::uint16_t* bf16);  // round to nearest even
  // C[m, begin..end) = alpha * A[M,K] B[N,K]^T + beta * C, M small: B is read once.
  void (*dot_rows)(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, const float* b,
                   float beta, float* c, std::int64_t begin, std::int64_t end);
  void (*dot_rows_bf16)(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                        const std::uint16_t* b, float beta, float* c, std::int64_t begin, std::int64_t end);
  // o[m, dim] = keep * o + p[m, n] v[n, dim], keep 0 or 1, m small: v is read once. In parts of n the same bits.
  void (*weigh_rows)(std::int64_t m, std::int64_t n, std::int64_t dim, const float* p, std::int64_t p_stride,
                     const float* v, float keep, float* o);
  // out = x (or out += x, add) where kept, else 0; kept elements times 1/(1-p). Element i of the mask is index first+i
  // of the stream `key` (an Rng's key, see dropout_key).
  void (*dropout)(std::int64_t n, std::uint64_t key, std::uint64_t first, float p, bool accumulate, const float* x,
                  float* out);
  void (*adamw)(std::int64_t n, const AdamWScalars& s, const float* gradient, float* value, float* m, float* v);
};

// The best set this processor runs.
const VectorKernels& vector_kernels();

const VectorKernels& vector_kernels_avx512();
const VectorKernels& vector_kernels_avx2();
const VectorKernels& vector_kernels_base();

}  // namespace mw::engine
