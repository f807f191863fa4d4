// SPDX-License-Identifier: Apache-2.0
// Bodies of VectorKernels; included by exactly the vector_*.cpp files, each built for one instruction set.
#pragma once
#include "core/engine/kernels/vector.h"
#include "core/engine/kernels/vector_math.h"

namespace mw::engine {
namespace {

// ---- norms

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

void rms_norm(i64 rows, i64 dim, const float* x, NormGain g, float eps, float* y, float* inv) {
  for (i64 r = 0; r < rows; ++r) {
    inv[r] = inverse_rms(dim, x + r * dim, eps);
    norm_row(dim, x + r * dim, g, inv[r], y + r * dim);
  }
}

void rms_norm_add(i64 rows, i64 dim, const float* x, NormGain g, float eps, const float* residual, float* y,
                  float* inv) {
  for (i64 r = 0; r < rows; ++r) {
    inv[r] = inverse_rms(dim, x + r * dim, eps);
    norm_add_row(dim, x + r * dim, g, inv[r], residual + r * dim, y + r * dim);
  }
}

void rms_norm_again(i64 rows, i64 dim, const float* x, NormGain g, const float* inv, float* y) {
  for (i64 r = 0; r < rows; ++r) norm_row(dim, x + r * dim, g, inv[r], y + r * dim);
}

void rms_norm_add_again(i64 rows, i64 dim, const float* x, NormGain g, const float* inv, const float* residual,
                        float* y) {
  for (i64 r = 0; r < rows; ++r) norm_add_row(dim, x + r * dim, g, inv[r], residual + r * dim, y + r * dim);
}

// dx = s gain dy - x s^3/dim sum(gain dy x)
void rms_norm_backward(i64 rows, i64 dim, const float* x, NormGain g, const float* inv, const float* dy, float keep,
                       float* dx) {
  for (i64 r = 0; r < rows; ++r, x += dim, dy += dim, dx += dim) {
    V acc{};
    for_vectors(
        dim, [&](i64 i, i64 c) __attribute__((always_inline)) {
          acc += load_n(x + i, c) * load_n(dy + i, c) * (load_n(g.w + i, c) + g.offset);
        });
    const float s = inv[r];
    const float t = sum(acc) * s * s * s / static_cast<float>(dim);
    if (keep == 0.0f) {
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

void rms_norm_weight(i64 rows, i64 dim, const float* x, const float* inv, const float* dy, i64 begin, i64 end,
                     float* dw) {
  for (i64 first = begin; first < end; first += kLanes) {
    const i64 c = end - first < kLanes ? end - first : kLanes;
    V acc = load_part(dw + first, c);
    for (i64 r = 0; r < rows; ++r) acc += load_n(dy + r * dim + first, c) * load_n(x + r * dim + first, c) * inv[r];
    store_part(dw + first, acc, c);
  }
}

// ---- rope, GeGLU

void rope(i64 rows, i64 heads, i64 dim, const int* positions, RopeTable table, float sign, float* x) {
  const i64 half = dim / 2;
  for (i64 r = 0; r < rows; ++r) {
    const float* cos = table.cos + positions[r] * half;
    const float* sin = table.sin + positions[r] * half;
    for (i64 h = 0; h < heads; ++h, x += dim) {
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

// ---- softmax and cross-entropy

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

// s <- exp(s - m), returns the sum; lanes beyond n do not count.
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

void softmax_again(i64 n, i64 lo, i64 hi, float lse, float* s) {
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

// The sum of exp(y - m) without a trace in y.
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

// A capped logit's slope needs the logit itself, so nothing is overwritten before the gradient.
void capped_gradient(i64 n, float m, float cap, float factor, i64 target, float scale, float* y) {
  const float at_target = y[target];
  const auto slope = [cap](V v) __attribute__((always_inline)) {
    const V t = v * (1.0f / cap);
    return 1.0f - t * t;
  };
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V v = load_n(y + i, c);
        store_n(y + i, exp(v - m) * factor * slope(v), c);
      });
  y[target] -= scale * slope(splat(at_target))[0];
}

double cross_entropy(i64 n, float* logits, i64 target, float cap, float scale) {
  const float m = row_max(n, logits);
  const double at_target = static_cast<double>(logits[target]) - static_cast<double>(m);
  double total = 0;
  constexpr i64 kBlock = 4096;  // f32 within a block, f64 across: the vocabulary may hold 262144 terms
  for (i64 i = 0; i < n; i += kBlock) {
    const i64 count = n - i < kBlock ? n - i : kBlock;
    total += static_cast<double>(cap > 0 ? exp_sum_only(count, m, logits + i) : exp_sum(count, m, logits + i));
  }
  if (scale != 0.0f) {
    const auto factor = static_cast<float>(static_cast<double>(scale) / total);
    if (cap > 0) {
      capped_gradient(n, m, cap, factor, target, scale, logits);
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

// ---- vectors

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
[[gnu::always_inline]] inline float widened1(std::uint16_t h) {
  const std::uint32_t bits = static_cast<std::uint32_t>(h) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

void widen(i64 n, const std::uint16_t* in, float* out) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, widened(in + i));
  for (; i < n; ++i) out[i] = widened1(in[i]);
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

[[gnu::always_inline]] inline V load_weight(const float* p) {
  return load(p);
}
[[gnu::always_inline]] inline V load_weight(const std::uint16_t* p) {
  return widened(p);
}
[[gnu::always_inline]] inline float load_weight1(const float* p) {
  return *p;
}
[[gnu::always_inline]] inline float load_weight1(const std::uint16_t* p) {
  return widened1(*p);
}

// M rows of A against R rows of B at once: M*R accumulators keep the loads busy.
template <int M, int R, class W>
[[gnu::always_inline]] inline void dot_tile(i64 n, i64 k, float alpha, const float* a, const W* b, float beta,
                                            float* c) {
  V acc[M][R] = {};
  float tail[M][R] = {};
  i64 i = 0;
  for (; i + kLanes <= k; i += kLanes)
    for (int r = 0; r < R; ++r) {
      const V w = load_weight(b + r * k + i);
      for (int m = 0; m < M; ++m) acc[m][r] += load(a + m * k + i) * w;
    }
  for (; i < k; ++i)
    for (int r = 0; r < R; ++r)
      for (int m = 0; m < M; ++m) tail[m][r] += a[m * k + i] * load_weight1(b + r * k + i);
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) {
      const float y = alpha * (sum(acc[m][r]) + tail[m][r]);
      c[m * n + r] = beta == 0.0f ? y : y + beta * c[m * n + r];
    }
}

// Two vectors of rows, W lanes each, into one with W/2 lanes a row: a's rows, then b's, each half added to the other.
template <int W>
[[gnu::always_inline]] inline V halved(V a, V b) {
  I low;
  for (int lane = 0; lane < 16; ++lane) {
    constexpr int kHalf = W / 2;
    low[lane] = (lane / 8) * 16 + (lane % 8) / kHalf * W + lane % kHalf;
  }
  return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + W / 2);
}

// 16 rows of few columns, K = 4, 8 or a multiple of 16: one row's sum would cost more than its products. LoRA's second
// factor at decode.
template <int K>
[[gnu::always_inline]] inline V dot_short_rows(const float* a, const float* b) {
  constexpr int kPerVector = K < kLanes ? static_cast<int>(kLanes) / K : 1, kVectors = 16 / kPerVector;
  V x[K < kLanes ? 1 : K / kLanes];
  for (int i = 0; i < static_cast<int>(sizeof x / sizeof x[0]) * kLanes; ++i) x[i / kLanes][i % kLanes] = a[i % K];
  V acc[kVectors];
  for (int r = 0; r < kVectors; ++r) {
    acc[r] = load(b + r * kPerVector * K) * x[0];
    for (int i = 1; i < K / kLanes; ++i) acc[r] += load(b + r * K + i * kLanes) * x[i];
  }
  if constexpr (K >= kLanes)
    for (int r = 0; r < 8; ++r) acc[r] = halved<16>(acc[2 * r], acc[2 * r + 1]);
  if constexpr (K >= 8)
    for (int r = 0; r < 4; ++r) acc[r] = halved<8>(acc[2 * r], acc[2 * r + 1]);
  for (int r = 0; r < 2; ++r) acc[r] = halved<4>(acc[2 * r], acc[2 * r + 1]);
  return halved<2>(acc[0], acc[1]);
}

// g++ 12 turns a condition on beta around the last addition into a mask of one lane, so each case has its loop.
template <int K>
void dot_rows_short(i64 m, i64 n, float alpha, const float* a, const float* b, float beta, float* c, i64 begin,
                    i64 end) {
  const auto each = [&](auto put) __attribute__((always_inline)) {
    for (i64 row = begin; row < end; row += kLanes)
      for (i64 i = 0; i < m; ++i) put(c + i * n + row, dot_short_rows<K>(a + i * K, b + row * K) * alpha);
  };
  if (beta == 0.0f)
    each([](float* out, V y) __attribute__((always_inline)) { store(out, y); });
  else
    each([&](float* out, V y) __attribute__((always_inline)) { store(out, y + load(out) * beta); });
}

template <int M, class W>
void dot_rows_m(i64 n, i64 k, float alpha, const float* a, const W* b, float beta, float* c, i64 begin, i64 end) {
  constexpr int kRows = M <= 2 ? 4 : 2;
  i64 row = begin;
  for (; row + kRows <= end; row += kRows) dot_tile<M, kRows>(n, k, alpha, a, b + row * k, beta, c + row);
  for (; row < end; ++row) dot_tile<M, 1>(n, k, alpha, a, b + row * k, beta, c + row);
}

template <class W>
void dot_rows_any(i64 m, i64 n, i64 k, float alpha, const float* a, const W* b, float beta, float* c, i64 begin,
                  i64 end) {
  for (; m >= 4; m -= 4, a += 4 * k, c += 4 * n) dot_rows_m<4>(n, k, alpha, a, b, beta, c, begin, end);
  if (m == 3) dot_rows_m<3>(n, k, alpha, a, b, beta, c, begin, end);
  if (m == 2) dot_rows_m<2>(n, k, alpha, a, b, beta, c, begin, end);
  if (m == 1) dot_rows_m<1>(n, k, alpha, a, b, beta, c, begin, end);
}

// M rows of p against C vectors of v's columns at once; `last` counts the lanes of the last of them.
template <int M, int C>
[[gnu::always_inline]] inline void weigh_tile(i64 n, i64 dim, const float* p, const float* v, float* o, i64 last) {
  V acc[M][C] = {};
  for (i64 j = 0; j < n; ++j, v += dim) {
    V x[C];
    for (int c = 0; c < C; ++c) x[c] = c + 1 == C ? load_n(v + c * kLanes, last) : load(v + c * kLanes);
    for (int m = 0; m < M; ++m) {
      const V weight = splat(p[m * n + j]);
      for (int c = 0; c < C; ++c) acc[m][c] += weight * x[c];
    }
  }
  for (int m = 0; m < M; ++m)
    for (int c = 0; c < C; ++c) store_n(o + m * dim + c * kLanes, acc[m][c], c + 1 == C ? last : kLanes);
}

template <int M>
void weigh_rows_m(i64 n, i64 dim, const float* p, const float* v, float* o) {
  constexpr int kVectors = 4;
  i64 i = 0;
  for (; i + kVectors * kLanes <= dim; i += kVectors * kLanes) weigh_tile<M, kVectors>(n, dim, p, v + i, o + i, kLanes);
  for (; i < dim; i += kLanes) weigh_tile<M, 1>(n, dim, p, v + i, o + i, dim - i < kLanes ? dim - i : kLanes);
}

void weigh_rows(i64 m, i64 n, i64 dim, const float* p, const float* v, float* o) {
  for (; m >= 4; m -= 4, p += 4 * n, o += 4 * dim) weigh_rows_m<4>(n, dim, p, v, o);
  if (m == 3) weigh_rows_m<3>(n, dim, p, v, o);
  if (m == 2) weigh_rows_m<2>(n, dim, p, v, o);
  if (m == 1) weigh_rows_m<1>(n, dim, p, v, o);
}

void dot_rows(i64 m, i64 n, i64 k, float alpha, const float* a, const float* b, float beta, float* c, i64 begin,
              i64 end) {
  const i64 whole = begin + (end - begin) / kLanes * kLanes;
  switch (k) {
    case 4:
      dot_rows_short<4>(m, n, alpha, a, b, beta, c, begin, whole);
      break;
    case 8:
      dot_rows_short<8>(m, n, alpha, a, b, beta, c, begin, whole);
      break;
    case 16:
      dot_rows_short<16>(m, n, alpha, a, b, beta, c, begin, whole);
      break;
    case 32:
      dot_rows_short<32>(m, n, alpha, a, b, beta, c, begin, whole);
      break;
    case 64:
      dot_rows_short<64>(m, n, alpha, a, b, beta, c, begin, whole);
      break;
    default:
      return dot_rows_any(m, n, k, alpha, a, b, beta, c, begin, end);
  }
  dot_rows_any(m, n, k, alpha, a, b, beta, c, whole, end);
}

[[gnu::always_inline]] inline u64 mixed(u64 x) {  // as mix64 of core/base/rng.h
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

void dropout(i64 n, u64 key, u64 first, float p, bool accumulate, const float* x, float* out) {
  const auto threshold = static_cast<u64>(static_cast<double>(p) * 16777216.0);  // of 24 bits
  const float scale = 1.0f / (1.0f - p);
  for (i64 i = 0; i < n; ++i) {
    const u64 draw = mixed(key + (first + static_cast<u64>(i)) * 0xd1342543de82ef95ull) >> 40;
    const float y = draw >= threshold ? x[i] * scale : 0.0f;
    out[i] = accumulate ? out[i] + y : y;
  }
}

void adamw(i64 n, const AdamWScalars& s, const float* gradient, float* value, float* m, float* v) {
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V g = load_n(gradient + i, c) * s.gradient_scale;
        const V m1 = load_n(m + i, c) + (g - load_n(m + i, c)) * s.new1;
        const V v1 = load_n(v + i, c) * s.beta2 + g * g * s.new2;
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
          .rms_norm = rms_norm,
          .rms_norm_add = rms_norm_add,
          .rms_norm_again = rms_norm_again,
          .rms_norm_add_again = rms_norm_add_again,
          .rms_norm_backward = rms_norm_backward,
          .rms_norm_weight = rms_norm_weight,
          .rope = rope,
          .geglu = geglu,
          .geglu_backward = geglu_backward,
          .highest = row_max,
          .softmax = softmax,
          .softmax_again = softmax_again,
          .softmax_backward = softmax_backward,
          .cross_entropy = cross_entropy,
          .softcap = softcap,
          .softcap_backward = softcap_backward,
          .scale = scale_all,
          .add = add,
          .dot = dot,
          .widen = widen,
          .narrow = narrow,
          .dot_rows = dot_rows,
          .dot_rows_bf16 = dot_rows_any<std::uint16_t>,
          .weigh_rows = weigh_rows,
          .dropout = dropout,
          .adamw = adamw};
}

}  // namespace
}  // namespace mw::engine
