// SPDX-License-Identifier: Apache-2.0
// Norms, RoPE and GeGLU; a part of vector_bodies.h.
#pragma once
#include "core/engine/kernels/vector.h"
#include "core/engine/kernels/vector_math.h"

namespace mw::engine {
namespace {

[[gnu::always_inline]] inline float inverse_rms(i64 dim, const float* x, float eps) {
  V acc{};
  for_vectors(
      dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V v = load_n(x + i, c);
        acc += v * v;
      });
  return 1.0f / sqrtf(sum(acc) / static_cast<float>(dim) + eps);
}

[[gnu::always_inline]] inline void norm_row(i64 dim, const float* x, NormGain g, float s, float* y) {
  for_vectors(
      dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
        store_n(y + i, load_n(x + i, c) * s * (load_n(g.w + i, c) + g.offset), c);
      });
}

[[gnu::always_inline]] inline void norm_add_row(i64 dim, const float* x, NormGain g, float s, const float* residual,
                                                float* y) {
  for_vectors(
      dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V n = load_n(x + i, c) * s * (load_n(g.w + i, c) + g.offset);
        store_n(y + i, load_n(residual + i, c) + n, c);
      });
}

float inverse_rms_of(i64 dim, const float* x, float eps) {
  return inverse_rms(dim, x, eps);
}

void rms_norm(const NormRows& in, float eps, float* y, float* inv) {
  const i64 rows = in.rows, dim = in.dim;
  const NormGain g = in.gain;
  const float* x = in.x;
  for (i64 r = 0; r < rows; ++r) {
    inv[r] = inverse_rms(dim, x + r * dim, eps);
    norm_row(dim, x + r * dim, g, inv[r], y + r * dim);
  }
}

void rms_norm_add(const NormRows& in, float eps, const float* residual, float* y, float* inv) {
  const i64 rows = in.rows, dim = in.dim;
  const NormGain g = in.gain;
  const float* x = in.x;
  for (i64 r = 0; r < rows; ++r) {
    inv[r] = inverse_rms(dim, x + r * dim, eps);
    norm_add_row(dim, x + r * dim, g, inv[r], residual + r * dim, y + r * dim);
  }
}

void recompute_rms_norm(const NormRows& in, const float* inv, float* y) {
  const i64 rows = in.rows, dim = in.dim;
  for (i64 r = 0; r < rows; ++r) norm_row(dim, in.x + r * dim, in.gain, inv[r], y + r * dim);
}

void recompute_rms_norm_add(const NormRows& in, const float* inv, const float* residual, float* y) {
  const i64 rows = in.rows, dim = in.dim;
  for (i64 r = 0; r < rows; ++r) norm_add_row(dim, in.x + r * dim, in.gain, inv[r], residual + r * dim, y + r * dim);
}

// dx = s gain dy - x s^3/dim sum(gain dy x)
void rms_norm_backward(const NormRows& in, const float* inv, const float* dy, float* dx, StoreMode how) {
  const i64 rows = in.rows, dim = in.dim;
  const NormGain g = in.gain;
  const float* x = in.x;
  for (i64 r = 0; r < rows; ++r, x += dim, dy += dim, dx += dim) {
    V acc{};
    for_vectors(
        dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
          acc += load_n(x + i, c) * load_n(dy + i, c) * (load_n(g.w + i, c) + g.offset);
        });
    const float s = inv[r];
    const float t = sum(acc) * s * s * s / static_cast<float>(dim);
    if (how == StoreMode::write) {
      for_vectors(
          dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
            store_n(dx + i, load_n(dy + i, c) * (load_n(g.w + i, c) + g.offset) * s - load_n(x + i, c) * t, c);
          });
    } else {
      for_vectors(
          dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
            const V d = load_n(dy + i, c) * (load_n(g.w + i, c) + g.offset) * s - load_n(x + i, c) * t;
            store_n(dx + i, load_n(dx + i, c) + d, c);
          });
    }
  }
}

void rms_norm_weight(const NormRows& in, const float* inv, const float* dy, ColumnRange columns, float* dw) {
  const i64 rows = in.rows, dim = in.dim;
  const float* x = in.x;
  for (i64 first = columns.begin; first < columns.end; first += kLanes) {
    const i64 c = columns.end - first < kLanes ? columns.end - first : kLanes;
    V acc = load_part(dw + first, c);
    for (i64 r = 0; r < rows; ++r) acc += load_n(dy + r * dim + first, c) * load_n(x + r * dim + first, c) * inv[r];
    store_part(dw + first, acc, c);
  }
}

void rope(const RopeHeads& heads, RopeTable table, float sign, float* x) {
  const i64 tokens = heads.tokens, count = heads.heads, dim = heads.dim, half = dim / 2;
  const int* positions = heads.positions;
  for (i64 r = 0; r < tokens; ++r) {
    const float* cos = table.cos + positions[r] * half;
    const float* sin = table.sin + positions[r] * half;
    for (i64 h = 0; h < count; ++h, x += dim) {
      for_vectors(
          half, [&](i64 i, i64 c) __attribute__((always_inline)) {
            const V co = load_n(cos + i, c), si = load_n(sin + i, c) * sign;
            const V a = load_n(x + i, c), b = load_n(x + half + i, c);
            store_n(x + i, a * co - b * si, c);
            store_n(x + half + i, b * co + a * si, c);
          });
    }
  }
}

constexpr float kGeluScale = 1.5957691216057308f;  // 2 sqrt(2/pi): (1 + tanh y) / 2 = sigmoid(2 y)

// sigmoid(2 c (u + 0.044715 u^3)): exact in the tails, where 1 + tanh would cancel
[[gnu::always_inline]] inline V gelu_gate(V u) {
  const V y = u * kGeluScale * (u * u * 0.044715f + 1.0f);
  return 1.0f / (exp(-y) + 1.0f);
}

void geglu(i64 n, const float* gate, const float* up, float* out) {
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V u = load_n(gate + i, c);
        store_n(out + i, u * gelu_gate(u) * load_n(up + i, c), c);
      });
}

void geglu_backward(i64 n, float* gate, float* up, float* d_out) {
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V u = load_n(gate + i, c), v = load_n(up + i, c), d = load_n(d_out + i, c);
        const V s = gelu_gate(u);
        const V slope = s + u * s * (1.0f - s) * kGeluScale * (u * u * 0.134145f + 1.0f);
        const V gelu = u * s;
        store_n(gate + i, d * v * slope, c);
        store_n(up + i, d * gelu, c);
        store_n(d_out + i, gelu * v, c);
      });
}

}  // namespace
}  // namespace mw::engine
