// SPDX-License-Identifier: Apache-2.0
// int8 weights of packed.h, for packed_bodies.h: a group of depth is summed in integers, which is exact in any order.
#pragma once
#include <utility>

#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/packed_lanes.h"

namespace mw::engine {
namespace {

[[gnu::always_inline]] inline F widened_scales(const std::uint16_t* p) {
  return (F)(__builtin_convertvector(read<Halves>(p), W) << 16);
}

void quantise_rows(i64 rows, i64 k, const float* x, std::int16_t* out, float* scales) {
  constexpr float kShifter = 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer
  typedef std::int16_t Whole __attribute__((vector_size(kBytes / 2)));
  for (i64 r = 0; r < rows; ++r)
    for (i64 first = 0; first < k; first += kGroup) {
      const i64 count = lesser(k - first, kGroup);
      const float* in = x + r * k + first;
      F largest{};
      for (i64 i = 0; i < count; i += kWidth) {
        const F size = (F)((W)read_floats(in + i, count - i) & 0x7fffffffu);
        largest = size > largest ? size : largest;
      }
      float top = 0;
      for (int lane = 0; lane < kWidth; ++lane) top = largest[lane] > top ? largest[lane] : top;
      const float by = top > 0 ? 32767.0f / top : 0.0f;
      for (i64 i = 0; i < count; i += kWidth) {
        const S bits = (S)(read_floats(in + i, count - i) * by + kShifter);
        const Whole rounded = __builtin_convertvector(bits - 0x4b400000, Whole);
        memcpy(out + r * k + first + i, &rounded, static_cast<size_t>(lesser(count - i, kWidth)) * 2);
      }
      scales[r * groups_of(k) + first / kGroup] = top / 32767.0f;
    }
}

constexpr i64 kInt8Ahead = 4096;  // prefetch distance, bytes

// Depth [begin, end) of rows of A, k apart, and of columns of a panel from column `from` on.
struct Int8Group {
  const std::int16_t* a;
  i64 k;
  const std::int8_t* panel;
  i64 begin, end, from;
};

[[gnu::always_inline]] inline S splat_bytes(const void* four) {
  return S{} + read<std::int32_t>(four);
}

#if defined(__ARM_FEATURE_DOTPROD)
// Activations x = 256 high + low for dot products of bytes. Without FEAT_I8MM both factors are signed, so `low` holds
// low - 128, and 128 times the sum of the weights is added to the product.
struct SplitRow {
  std::int8_t high[kGroup], low[kGroup];
  [[gnu::always_inline]] void write(const std::int16_t* x, i64 n) {
    for (i64 i = 0; i < n; ++i) high[i] = static_cast<std::int8_t>(x[i] >> 8);
#if defined(__ARM_FEATURE_MATMUL_INT8)
    for (i64 i = 0; i < n; ++i) low[i] = static_cast<std::int8_t>(x[i]);
#else
    for (i64 i = 0; i < n; ++i) low[i] = static_cast<std::int8_t>(x[i] ^ 0x80);
#endif
  }
};

// Four values of depth at once, from two pairs of a panel; a missing second pair counts as zero weights.
template <int R, int V>
[[gnu::always_inline]] inline void add_group(const Int8Group& group, S (&acc)[R][V]) {
  static_assert(V % 2 == 0);
  SplitRow rows[R];
  for (int r = 0; r < R; ++r) rows[r].write(group.a + r * group.k + group.begin, group.end - group.begin);
  int32x4_t high[R][V] = {}, low[R][V] = {}, sums[V] = {};
  for (i64 i = group.begin; i < group.end; i += 4) {
    const std::int8_t* const at = group.panel + i * kPanelRows + 2 * group.from;
    if (group.from == 0)
      for (int pair = 0; pair < 2; ++pair) fetch_line(at + 2 * kPanelRows * pair + kInt8Ahead);
    int8x16_t q[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; v += 2) {
      const int16x8_t even = vreinterpretq_s16_s8(vld1q_s8(at + 2 * kWidth * v)),
                      odd = i + 2 < group.end ? vreinterpretq_s16_s8(vld1q_s8(at + 2 * kPanelRows + 2 * kWidth * v))
                                              : vdupq_n_s16(0);
      q[v] = vreinterpretq_s8_s16(vzip1q_s16(even, odd)), q[v + 1] = vreinterpretq_s8_s16(vzip2q_s16(even, odd));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto x = (int8x16_t)splat_bytes(rows[r].high + i - group.begin),
                 y = (int8x16_t)splat_bytes(rows[r].low + i - group.begin);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        high[r][v] = vdotq_s32(high[r][v], q[v], x);
#if defined(__ARM_FEATURE_MATMUL_INT8)
        low[r][v] = vusdotq_s32(low[r][v], (uint8x16_t)y, q[v]);
#else
        low[r][v] = vdotq_s32(low[r][v], q[v], y);
#endif
      }
    }
#if !defined(__ARM_FEATURE_MATMUL_INT8)
    for (int v = 0; v < V; ++v) sums[v] = vdotq_s32(sums[v], q[v], vdupq_n_s8(1));
#endif
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = (S)high[r][v] * 256 + (S)low[r][v] + (S)sums[v] * 128;
}
#else
// Few sums take a second set for every other pair of depth, so that enough of them are independent.
template <int R, int V>
[[gnu::always_inline]] inline void add_group(const Int8Group& group, S (&acc)[R][V]) {
  constexpr int kSets = R * V < kInt8Sums ? 2 : 1;
  S sets[kSets][R][V] = {};
  const auto add_pair = [&](i64 i, S(&to)[R][V]) __attribute__((always_inline)) {
    const std::int8_t* const at = group.panel + i * kPanelRows + 2 * group.from;
    if (group.from == 0) fetch_line(at + kInt8Ahead);
    S q[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) q[v] = int8_pairs(at + 2 * kWidth * v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const S x = splat_bytes(group.a + r * group.k + i);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) add_pair_products(q[v], x, to[r][v]);
    }
  };
  i64 i = group.begin;
  for (; i + 2 * kSets <= group.end; i += 2 * kSets)
#pragma GCC unroll 2
    for (int s = 0; s < kSets; ++s) add_pair(i + 2 * s, sets[s]);
  for (; i < group.end; i += 2) add_pair(i, sets[0]);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc[r][v] = kSets == 2 ? sets[0][r][v] + sets[kSets - 1][r][v] : sets[0][r][v];
}
#endif

// R rows and V vectors of columns of one panel, from column `from` of it on.
template <int R, int V>
[[gnu::noinline]] void int8_tile(i64 k, const std::int16_t* a, const float* a_scales, Int8Weight w, i64 from,
                                 const TileOutput& out, i64 left) {
  const i64 groups = groups_of(k);
  F sum[R][V];
  read_sums(out, left, sum);
  for (i64 g = 0; g < groups; ++g) {
    S acc[R][V] = {};
    add_group({a, k, w.at, g * kGroup, lesser((g + 1) * kGroup, k), from}, acc);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const F scale = widened_scales(w.scales + g * kPanelRows + from + kWidth * v);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r][v] += __builtin_convertvector(acc[r][v], F) * (scale * a_scales[r * groups + g]);
    }
  }
  write_sums(sum, out, left);
}

using Int8Tile = void (*)(i64, const std::int16_t*, const float*, Int8Weight, i64, const TileOutput&, i64);
constexpr i64 kOneRowColumns = kBytes == 16 ? 16 : kPanelRows;  // of a tile of one row
constexpr int kOneRowAcross = static_cast<int>(kOneRowColumns) / kWidth;
constexpr i64 kInt8Tall = kBytes == 64 ? 8 : 6;  // rows of a tile: the sums of integers take 16 of 32 or 12 registers
template <int R>
constexpr Int8Tile int8_tile_of() {
  constexpr int kRegisters = R == 1 ? kOneRowAcross : 2;
  return int8_tile<R, kRegisters>;
}
template <class Rows>
struct Int8Tiles;
template <int... R>
struct Int8Tiles<std::integer_sequence<int, R...>> {
  static constexpr Int8Tile of[] = {int8_tile_of<R + 1>()...};  // rows - 1
};

void int8_rows(const GemmShape& shape, const std::int16_t* a, const float* a_scales, Int8Weight w,
               const TileOutput& out) {
  const i64 k = shape.k, tiles = (shape.m + kInt8Tall - 1) / kInt8Tall;
  for (i64 column = 0; column < shape.n; column += kPanelRows) {
    const Int8Weight panel{w.at + column * k, w.scales + scale_index(k, column, 0)};
    for (i64 t = 0; t < tiles; ++t) {
      const i64 row = shape.m * t / tiles, height = shape.m * (t + 1) / tiles - row;
      const i64 width = height == 1 ? kOneRowColumns : 2 * kWidth;
      for (i64 from = 0; from < kPanelRows && column + from < shape.n; from += width)
        Int8Tiles<std::make_integer_sequence<int, kInt8Tall>>::of[height - 1](
            k, a + row * k, a_scales + row * groups_of(k), panel, from,
            {out.c + row * out.stride + column + from, out.stride, out.store}, shape.n - column - from);
    }
  }
}

void widen_int8(i64 columns, i64 k, i64 begin, i64 depth, Int8Weight w, std::uint16_t* out) {
  for (i64 n = 0; n < columns; n += kPanelRows)
    for (i64 i = begin; i < begin + depth; i += 2)
      for (int from = 0; from < kPanelRows; from += kWidth) {
        const S pairs = int8_pairs(w.at + n * k + i * kPanelRows + 2 * from);
        const F scale = widened_scales(w.scales + scale_index(k, n, i) + from);
        const S even = pairs << 16 >> 16, odd = pairs >> 16;
        write(out + n * depth + (i - begin) * kPanelRows + 2 * from,
              paired(__builtin_convertvector(even, F) * scale, __builtin_convertvector(odd, F) * scale));
      }
}

}  // namespace
}  // namespace mw::engine
