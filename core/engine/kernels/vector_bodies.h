// SPDX-License-Identifier: Apache-2.0
// Bodies of VectorKernels; included by exactly the vector_*.cpp files, each built for one instruction set.
#pragma once
#include <utility>

#include "core/engine/kernels/vector.h"
#include "core/engine/kernels/vector_math.h"
#include "core/engine/kernels/vector_rows.h"
#include "core/engine/kernels/vector_softmax.h"

namespace mw::engine {
namespace {

void scale_all(i64 n, float factor, float* x) {
  multiply(n, factor, x);
}

void add(i64 n, const float* x, float scale, float* y) {
  for_vectors(
      n, [&](i64 i, i64 c)
             __attribute__((always_inline)) { store_n(y + i, load_n(y + i, c) + load_n(x + i, c) * scale, c); });
}

double dot(i64 n, const float* x, const float* y) {
  D low{}, high{};
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < 8; ++l) {
      low[l] += static_cast<double>(x[i + l]) * static_cast<double>(y[i + l]);
      high[l] += static_cast<double>(x[i + 8 + l]) * static_cast<double>(y[i + 8 + l]);
    }
  double total = 0;
  for (int l = 0; l < 8; ++l) total += low[l] + high[l];
  for (; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return total;
}

[[gnu::always_inline]] inline V widened(const std::uint16_t* p) {
  H h;
  memcpy(&h, p, sizeof h);
  const I bits = __builtin_convertvector(h, I) << 16;
  V v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
[[gnu::always_inline]] inline float widen_scalar(std::uint16_t h) {
  const std::uint32_t bits = static_cast<std::uint32_t>(h) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

void widen(i64 n, const std::uint16_t* in, float* out) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, widened(in + i));
  for (; i < n; ++i) out[i] = widen_scalar(in[i]);
}

void narrow(i64 n, const float* in, std::uint16_t* out) {
  for (i64 i = 0; i < n; ++i) {
    std::uint32_t bits;
    memcpy(&bits, in + i, sizeof bits);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    out[i] = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
  }
}

// Rows of A [m, k] against rows of B [n, k]; see VectorKernels::dot_rows.
struct DotProducts {
  i64 n, k;
  const float* a;
  const float* b;
  float* c;
  GemmScaling scaling;
};

// The first M rows of A against R rows of B from `row` on: M*R accumulators keep the loads busy.
template <int M, int R>
[[gnu::always_inline]] inline void dot_tile(const DotProducts& d, i64 row) {
  const i64 n = d.n, k = d.k;
  const float alpha = d.scaling.alpha, beta = d.scaling.beta;
  const float* const a = d.a;
  const float* const b = d.b + row * k;
  float* const c = d.c + row;
  V acc[M][R] = {};
  float tail[M][R] = {};
  i64 i = 0;
  for (; i + kLanes <= k; i += kLanes)
    for (int r = 0; r < R; ++r) {
      const V w = load(b + r * k + i);
      for (int m = 0; m < M; ++m) acc[m][r] += load(a + m * k + i) * w;
    }
  for (; i < k; ++i)
    for (int r = 0; r < R; ++r)
      for (int m = 0; m < M; ++m) tail[m][r] = multiply_add(a[m * k + i], b[r * k + i], tail[m][r]);
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) {
      const float y = alpha * (sum(acc[m][r]) + tail[m][r]);
      c[m * n + r] = beta == 0.0f ? y : multiply_add(beta, c[m * n + r], y);
    }
}

// Two vectors of rows with W lanes each become one with W/2 lanes a row, a's rows first: the halves of each row are
// added.
template <int W, int... Lane>
[[gnu::always_inline]] inline V halved(V a, V b, std::integer_sequence<int, Lane...>) {
  constexpr int kHalf = W / 2;
  return __builtin_shufflevector(a, b, ((Lane / 8) * 16 + (Lane % 8) / kHalf * W + Lane % kHalf)...) +
         __builtin_shufflevector(a, b, ((Lane / 8) * 16 + (Lane % 8) / kHalf * W + Lane % kHalf + kHalf)...);
}
template <int W>
[[gnu::always_inline]] inline V halved(V a, V b) {
  return halved<W>(a, b, std::make_integer_sequence<int, 16>());
}

// 16 rows of few columns, K = 4, 8 or a multiple of 16: LoRA's second factor in decoding. One row at a time, the sum
// over a vector's lanes would cost more than the products.
template <int K>
[[gnu::always_inline]] inline V dot_short_rows(const float* a, const float* b) {
  constexpr int kPerVector = K < kLanes ? static_cast<int>(kLanes) / K : 1, kVectors = 16 / kPerVector;
  V x[K < kLanes ? 1 : K / kLanes];
  for (int i = 0; i < static_cast<int>(sizeof x / sizeof x[0]) * kLanes; ++i) x[i / kLanes][i % kLanes] = a[i % K];
  V acc[kVectors];
  for (int r = 0; r < kVectors; ++r) {
    // Added to zero, so that no build contracts the product with the addition in halved().
    acc[r] = V{} + load(b + r * kPerVector * K) * x[0];
    for (int i = 1; i < K / kLanes; ++i) acc[r] += load(b + r * K + i * kLanes) * x[i];
  }
  if constexpr (K >= kLanes)
    for (int r = 0; r < 8; ++r) acc[r] = halved<16>(acc[2 * r], acc[2 * r + 1]);
  if constexpr (K >= 8)
    for (int r = 0; r < 4; ++r) acc[r] = halved<8>(acc[2 * r], acc[2 * r + 1]);
  for (int r = 0; r < 2; ++r) acc[r] = halved<4>(acc[2 * r], acc[2 * r + 1]);
  return halved<2>(acc[0], acc[1]);
}

// g++ 12 turns a condition on beta around the last addition into a mask of one lane, so each case has its loop. Either
// has one product and at most one addition: of two products, builds would round different ones before the addition.
template <int K>
void dot_rows_short(i64 m, const DotProducts& d, ColumnRange columns) {
  const i64 n = d.n;
  const float alpha = d.scaling.alpha;
  const float *const a = d.a, *const b = d.b;
  float* const c = d.c;
  const auto each = [&](auto put) __attribute__((always_inline)) {
    for (i64 row = columns.begin; row < columns.end; row += kLanes)
      for (i64 i = 0; i < m; ++i) put(c + i * n + row, dot_short_rows<K>(a + i * K, b + row * K));
  };
  if (d.scaling.beta == 0.0f)
    each([&](float* out, V y) __attribute__((always_inline)) { store(out, y * alpha); });
  else
    each([&](float* out, V y) __attribute__((always_inline)) { store(out, load(out) + y * alpha); });
}

template <int M>
void dot_rows_m(const DotProducts& d, ColumnRange columns) {
  constexpr int kRows = M <= 2 ? 4 : 2;
  i64 row = columns.begin;
  for (; row + kRows <= columns.end; row += kRows) dot_tile<M, kRows>(d, row);
  for (; row < columns.end; ++row) dot_tile<M, 1>(d, row);
}

void dot_rows_any(i64 m, DotProducts d, ColumnRange columns) {
  for (; m >= 4; m -= 4, d.a += 4 * d.k, d.c += 4 * d.n) dot_rows_m<4>(d, columns);
  if (m == 3) dot_rows_m<3>(d, columns);
  if (m == 2) dot_rows_m<2>(d, columns);
  if (m == 1) dot_rows_m<1>(d, columns);
}

void dot_rows(const GemmShape& shape, const float* a, const float* b, float* c, GemmScaling scaling,
              ColumnRange columns) {
  const DotProducts d{shape.n, shape.k, a, b, c, scaling};
  const i64 m = shape.m, whole = columns.begin + (columns.end - columns.begin) / kLanes * kLanes;
  const ColumnRange vectors{columns.begin, whole};
  switch (shape.k) {
    case 4:
      dot_rows_short<4>(m, d, vectors);
      break;
    case 8:
      dot_rows_short<8>(m, d, vectors);
      break;
    case 16:
      dot_rows_short<16>(m, d, vectors);
      break;
    case 32:
      dot_rows_short<32>(m, d, vectors);
      break;
    case 64:
      dot_rows_short<64>(m, d, vectors);
      break;
    default:
      return dot_rows_any(m, d, columns);
  }
  dot_rows_any(m, d, {whole, columns.end});
}

// M rows of p against C vectors of v's columns at once; `last` counts the lanes of the last vector.
template <int M, int C>
[[gnu::always_inline]] inline void weighted_sum_tile(const GemmShape& shape, MatrixView weights, const float* v,
                                                     float* o, StoreMode how, i64 last) {
  const i64 n = shape.n, k = shape.k, p_stride = weights.stride;
  const float* const p = weights.data;
  V acc[M][C] = {};
  if (how == StoreMode::accumulate)
    for (int m = 0; m < M; ++m)
      for (int c = 0; c < C; ++c) acc[m][c] = load_n(o + m * n + c * kLanes, c + 1 == C ? last : kLanes);
  for (i64 j = 0; j < k; ++j, v += n) {
    V x[C];
    for (int c = 0; c < C; ++c) x[c] = c + 1 == C ? load_n(v + c * kLanes, last) : load(v + c * kLanes);
    for (int m = 0; m < M; ++m) {
      const V weight = splat(p[m * p_stride + j]);
      for (int c = 0; c < C; ++c) acc[m][c] += weight * x[c];
    }
  }
  for (int m = 0; m < M; ++m)
    for (int c = 0; c < C; ++c) store_n(o + m * n + c * kLanes, acc[m][c], c + 1 == C ? last : kLanes);
}

template <int M>
void weighted_sums_m(const GemmShape& shape, MatrixView p, const float* v, float* o, StoreMode how) {
  constexpr int kVectors = 4;
  const i64 n = shape.n;
  i64 i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes)
    weighted_sum_tile<M, kVectors>(shape, p, v + i, o + i, how, kLanes);
  for (; i < n; i += kLanes) weighted_sum_tile<M, 1>(shape, p, v + i, o + i, how, n - i < kLanes ? n - i : kLanes);
}

void weighted_sums(const GemmShape& shape, MatrixView p, const float* v, float* o, StoreMode how) {
  i64 m = shape.m;
  for (; m >= 4; m -= 4, p.data += 4 * p.stride, o += 4 * shape.n) weighted_sums_m<4>(shape, p, v, o, how);
  if (m == 3) weighted_sums_m<3>(shape, p, v, o, how);
  if (m == 2) weighted_sums_m<2>(shape, p, v, o, how);
  if (m == 1) weighted_sums_m<1>(shape, p, v, o, how);
}

[[gnu::always_inline]] inline u64 mixed(u64 x) {  // as mix64 of core/base/rng.h
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

void dropout(i64 n, const DropoutMask& mask, const float* x, float* out, StoreMode how) {
  const bool accumulate = how == StoreMode::accumulate;
  const u64 key = mask.key, first = mask.first;
  const auto threshold = static_cast<u64>(static_cast<double>(mask.p) * 16777216.0);  // of 24 bits
  const float scale = 1.0f / (1.0f - mask.p);
  for (i64 i = 0; i < n; ++i) {
    const u64 draw = mixed(key + (first + static_cast<u64>(i)) * 0xd1342543de82ef95ull) >> 40;
    if (accumulate)
      out[i] = draw >= threshold ? multiply_add(x[i], scale, out[i]) : out[i];
    else
      out[i] = draw >= threshold ? x[i] * scale : 0.0f;
  }
}

void adamw(i64 n, const AdamWScalars& s, const float* gradient, float* value, float* m, float* v) {
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V g = load_n(gradient + i, c) * s.gradient_scale;
        const V m1 = load_n(m + i, c) + (g - load_n(m + i, c)) * s.one_minus_beta1;
        const V v1 = load_n(v + i, c) * s.beta2 + g * g * s.one_minus_beta2;
        V root;
        for (int l = 0; l < kLanes; ++l) root[l] = sqrtf(v1[l]);
        const V step = m1 / (root * s.inverse_sqrt_bias2 + s.epsilon);
        store_n(value + i, load_n(value + i, c) * s.decay - step * s.step_size, c);
        store_n(m + i, m1, c);
        store_n(v + i, v1, c);
      });
}

constexpr VectorKernels kernels_of(const char* name) {
  return {.name = name,
          .inverse_rms = inverse_rms_of,
          .rms_norm = rms_norm,
          .rms_norm_add = rms_norm_add,
          .recompute_rms_norm = recompute_rms_norm,
          .recompute_rms_norm_add = recompute_rms_norm_add,
          .rms_norm_backward = rms_norm_backward,
          .rms_norm_weight = rms_norm_weight,
          .rope = rope,
          .geglu = geglu,
          .geglu_backward = geglu_backward,
          .max = row_max,
          .softmax = softmax,
          .recompute_softmax = recompute_softmax,
          .softmax_backward = softmax_backward,
          .cross_entropy = cross_entropy,
          .exp_sum = exp_sum_of_part,
          .softmax_gradient = softmax_gradient,
          .softcap = softcap,
          .softcap_backward = softcap_backward,
          .scale = scale_all,
          .add = add,
          .dot = dot,
          .widen = widen,
          .narrow = narrow,
          .dot_rows = dot_rows,
          .weighted_sums = weighted_sums,
          .dropout = dropout,
          .adamw = adamw};
}

}  // namespace
}  // namespace mw::engine
