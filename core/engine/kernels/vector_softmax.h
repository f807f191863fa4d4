// SPDX-License-Identifier: Apache-2.0
// Softmax, softcaps and cross-entropy; a part of vector_bodies.h.
#pragma once
#include "core/engine/kernels/vector.h"
#include "core/engine/kernels/vector_math.h"

namespace mw::engine {
namespace {

inline float row_max(i64 n, const float* s) {
  i64 i = 0;
  V best[4] = {splat(-INFINITY), splat(-INFINITY), splat(-INFINITY), splat(-INFINITY)};
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int j = 0; j < 4; ++j) best[j] = larger(best[j], load(s + i + j * kLanes));
  for (; i + kLanes <= n; i += kLanes) best[0] = larger(best[0], load(s + i));
  float m = highest(larger(larger(best[0], best[1]), larger(best[2], best[3])));
  for (; i < n; ++i) m = m > s[i] ? m : s[i];
  return m;
}

// s <- exp(s - m). Returns the sum, without the lanes beyond n.
[[gnu::always_inline]] inline float exp_sum(i64 n, float m, float* s) {
  V acc{};
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V e = exp(load(s + i) - m);
    store(s + i, e);
    acc += e;
  }
  if (i < n) {
    store_part(s + i, exp(load_part(s + i, n - i) - m), n - i);
    acc += load_part(s + i, n - i);
  }
  return sum(acc);
}

[[gnu::always_inline]] inline void multiply(i64 n, float f, float* s) {
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) { store_n(s + i, load_n(s + i, c) * f, c); });
}

float softmax(i64 n, i64 lo, i64 hi, float* s) {
  memset(s, 0, static_cast<size_t>(lo) * sizeof(float));
  memset(s + hi, 0, static_cast<size_t>(n - hi) * sizeof(float));
  const float m = row_max(hi - lo, s + lo);
  const float total = exp_sum(hi - lo, m, s + lo);
  multiply(hi - lo, 1.0f / total, s + lo);
  return m + logf(total);
}

void recompute_softmax(i64 n, i64 lo, i64 hi, float lse, float* s) {
  memset(s, 0, static_cast<size_t>(lo) * sizeof(float));
  memset(s + hi, 0, static_cast<size_t>(n - hi) * sizeof(float));
  for_vectors(
      hi - lo, [&](i64 i, i64 c)
                   __attribute__((always_inline)) { store_n(s + lo + i, exp(load_n(s + lo + i, c) - lse), c); });
}

void softmax_backward(i64 n, float* p, const float* dp, float delta) {
  for_vectors(
      n, [&](i64 i, i64 c)
             __attribute__((always_inline)) { store_n(p + i, load_n(p + i, c) * (load_n(dp + i, c) - delta), c); });
}

// The sum of exp(y - m); y is unchanged.
[[gnu::always_inline]] inline float exp_sum_only(i64 n, float m, const float* y) {
  V acc{};
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) acc += exp(load(y + i) - m);
  float rest[kLanes] = {};
  if (i < n) {
    store(rest, exp(load_part(y + i, n - i) - m));
    for (i64 j = n - i; j < kLanes; ++j) rest[j] = 0;
  }
  return sum(acc + load(rest));
}

constexpr i64 kSumBlock = 4096;  // f32 within a block, f64 across: the vocabulary may hold 262144 terms

// The slope of the softcap needs the capped logits, so they are overwritten only here.
void capped_gradient(i64 n, const SoftmaxGradient& gradient, float* y) {
  const float m = gradient.max, cap = gradient.cap, factor = gradient.factor, scale = gradient.scale;
  const float uniform = gradient.uniform;
  const i64 target = gradient.target;
  const float at_target = target >= 0 ? y[target] : 0.0f;
  const auto slope = [cap](V v) __attribute__((always_inline)) {
    const V t = v * (1.0f / cap);
    return 1.0f - t * t;
  };
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V v = load_n(y + i, c);
        store_n(y + i, (exp(v - m) * factor - uniform) * slope(v), c);
      });
  if (target >= 0) y[target] -= scale * slope(splat(at_target))[0];
}

double exp_sum_of_part(i64 n, float max, const float* logits) {
  double total = 0;
  for (i64 i = 0; i < n; i += kSumBlock)
    total += static_cast<double>(exp_sum_only(n - i < kSumBlock ? n - i : kSumBlock, max, logits + i));
  return total;
}

void softmax_gradient(i64 n, const SoftmaxGradient& gradient, float* logits) {
  if (gradient.cap > 0) return capped_gradient(n, gradient, logits);
  const float max = gradient.max, factor = gradient.factor, scale = gradient.scale, uniform = gradient.uniform;
  const i64 target = gradient.target;
  for_vectors(
      n, [&](i64 i, i64 c)
             __attribute__((always_inline)) { store_n(logits + i, exp(load_n(logits + i, c) - max) * factor - uniform, c); });
  if (target >= 0) logits[target] -= scale;
}

double cross_entropy(i64 n, float* logits, i64 target, float cap, float scale) {
  const float m = row_max(n, logits);
  const double at_target = static_cast<double>(logits[target]) - static_cast<double>(m);
  double total = 0;
  for (i64 i = 0; i < n; i += kSumBlock) {
    const i64 count = n - i < kSumBlock ? n - i : kSumBlock;
    total += static_cast<double>(cap > 0 ? exp_sum_only(count, m, logits + i) : exp_sum(count, m, logits + i));
  }
  if (scale != 0.0f) {
    const auto factor = static_cast<float>(static_cast<double>(scale) / total);
    if (cap > 0) {
      capped_gradient(n, {.max = m, .cap = cap, .factor = factor, .target = target, .scale = scale}, logits);
    } else {
      multiply(n, factor, logits);
      logits[target] -= scale;
    }
  }
  return log(total) - at_target;
}

void softcap(i64 n, float cap, float* x) {
  const float inverse = 1.0f / cap;
  for_vectors(
      n, [&](i64 i, i64 c)
             __attribute__((always_inline)) { store_n(x + i, tanh(load_n(x + i, c) * inverse) * cap, c); });
}

void softcap_backward(i64 n, float cap, const float* y, float* d) {
  const float inverse = 1.0f / cap;
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V t = load_n(y + i, c) * inverse;
        store_n(d + i, load_n(d + i, c) * (1.0f - t * t), c);
      });
}

}  // namespace
}  // namespace mw::engine
