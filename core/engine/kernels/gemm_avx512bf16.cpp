// SPDX-License-Identifier: Apache-2.0
// Built with AVX-512 BF16; see gemm_kernels.h. 12 rows by 32 columns of accumulators: 24 products for 14 loads.
#if defined(__AVX512BF16__)
#include <immintrin.h>

#include "core/engine/kernels/activation_avx512.h"
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

constexpr i64 kSlots = 2 * kGroupRows;  // elements of one pair of depth in a group
constexpr i64 kStep = 4, kLine = 32;    // pairs of depth between prefetches; elements of a cache line
// Prefetch distance, floats of a row: the hardware prefetcher follows fewer streams than the rows that are read at
// once.
constexpr i64 kFarAhead = 128;

template <int R, int V>
[[gnu::always_inline]] inline void pair_of_depth(const std::uint16_t* a, const std::uint16_t* b, __m512 (&acc)[R][V]) {
  __m512bh w[V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) w[v] = load_pairs(b + 32 * v);
  add_pair_of_depth(
      w, [&](int r) __attribute__((always_inline)) { return a + 2 * r; }, acc);
}

struct TilePlace {  // group of A and panel of B that a tile multiplies
  i64 group, panel;
};

template <int R, int V>
void tile(const GroupedStrip* strips, int count, TilePlace place, const ColumnMasks& columns, const TileOutput& out,
          const std::uint16_t* ahead) {
  __m512 acc[R][V];
  if (out.store == StoreMode::write)  // the lines that are written at the end
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) __builtin_prefetch(out.c + r * out.stride + 16 * v, 1);
  read_tile(out, columns, acc);
  for (int s = 0; s < count; ++s) {
    const GroupedStrip& strip = strips[s];
    const std::uint16_t* a = strip.a + place.group * kSlots * strip.steps;
    const std::uint16_t* b = strip.b + place.panel * strip.b_stride;
    i64 k = 0;
    for (; k + kStep <= strip.steps; k += kStep, a += kStep * kSlots, b += kStep * kPairs, ahead += kLine) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      for (int i = 0; i < kStep; ++i) pair_of_depth<R, V>(a + i * kSlots, b + i * kPairs, acc);
    }
    for (; k < strip.steps; ++k, a += kSlots, b += kPairs) pair_of_depth<R, V>(a, b, acc);
  }
  write_tile(acc, columns, out);
}

using Tile = void (*)(const GroupedStrip*, int, TilePlace, const ColumnMasks&, const TileOutput&, const std::uint16_t*);
constexpr Tile kTiles[2][kGroupRows + 1] = {
    {nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>, tile<6, 1>, tile<7, 1>, tile<8, 1>,
     tile<9, 1>, tile<10, 1>, tile<11, 1>, tile<12, 1>},
    {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>, tile<7, 2>, tile<8, 2>,
     tile<9, 2>, tile<10, 2>, tile<11, 2>, tile<12, 2>}};

// Without `ahead` a tile prefetches the first strip itself, which is in the cache already.
void block(i64 rows, i64 columns, const GroupedStrip* strips, int count, const TileOutput& out, Prefetch* ahead) {
  for (i64 row = 0; row < rows; row += kGroupRows) {
    const i64 height = rows - row < kGroupRows ? rows - row : kGroupRows;
    for (i64 column = 0; column < columns; column += kPanelRows) {
      const i64 left = columns - column;
      const std::uint16_t* next = strips[0].b;
      if (ahead && ahead->left > 0) {
        next = ahead->at;
        ahead->at += ahead->stride;
        --ahead->left;
      }
      kTiles[left > 16][height](strips, count, {row / kGroupRows, column / kPanelRows}, masks(left),
                                {out.c + row * out.stride + column, out.stride, out.store}, next);
    }
  }
}

[[gnu::always_inline]] inline __m512i two_narrow(__m512 low, __m512 high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(narrow16(low)), narrow16(high), 1);
}

// Up to 12 rows of `pairs` (at most 16) pairs of depth become slots of a group.
[[gnu::always_inline]] inline void store_group(__m512i v[16], i64 pairs, std::uint16_t* out) {
  for (int i = kGroupRows; i < 16; ++i) v[i] = _mm512_setzero_si512();
  transpose(v);
  for (i64 p = 0; p < pairs; ++p) _mm512_mask_storeu_epi32(out + p * kSlots, 0x0fff, v[p]);
}

void groups(i64 rows, i64 k, const Activations& x, float scale, std::uint16_t* out) {
  const i64 pairs = (k + 1) / 2;
  const __m512 by = _mm512_set1_ps(scale);
  for (i64 row = 0; row < rows; row += kGroupRows, out += pairs * kSlots) {
    const i64 height = rows - row < kGroupRows ? rows - row : kGroupRows;
    for (i64 pair = 0; pair < pairs; pair += 16) {
      const ColumnMasks mask = masks(k - 2 * pair);
      __m512i v[16];
      for (i64 i = 0; i < kGroupRows; ++i) {
        if (i >= height) {
          v[i] = _mm512_setzero_si512();
          continue;
        }
        const float* at = x.x + (row + i) * x.stride;
        for (int line = 0; line < 32; line += 16) _mm_prefetch(at + 2 * pair + kFarAhead + line, _MM_HINT_T0);
        const float inv = x.inv ? x.inv[row + i] : 1.0f;
        v[i] = two_narrow(_mm512_mul_ps(activation(x, at, 2 * pair, inv, mask.of[0]), by),
                          _mm512_mul_ps(activation(x, at, 2 * pair + 16, inv, mask.of[1]), by));
      }
      store_group(v, pairs - pair < 16 ? pairs - pair : 16, out + pair * kSlots);
    }
  }
}

// Reads along the rows of x, because the hardware prefetches lines within a row only.
void panels(i64 depth, i64 columns, const Activations& x, std::uint16_t* out) {
  const i64 pairs = (depth + 1) / 2;
  for (i64 pair = 0; pair < pairs; ++pair) {
    const float* row = x.x + 2 * pair * x.stride;
    const bool whole = 2 * pair + 1 < depth;
    const float even_inv = x.inv ? x.inv[2 * pair] : 1.0f, odd_inv = x.inv && whole ? x.inv[2 * pair + 1] : 1.0f;
    for (i64 column = 0; column < (columns + kPanelRows - 1) / kPanelRows * kPanelRows; column += 16) {
      const __mmask16 mask = masks(columns - column).of[0];
      const __m512 even = activation(x, row, column, even_inv, mask);
      const __m512 odd = whole ? activation(x, row + x.stride, column, odd_inv, mask) : _mm512_setzero_ps();
      _mm512_storeu_si512(out + column / kPanelRows * kPairs * pairs + pair * kPairs + column % kPanelRows * 2,
                          paired(narrow16(even), narrow16(odd)));
    }
  }
}

void logit_tile(i64 n, float cap, float* x, std::uint16_t* out, float* max, float* sum_so_far) {
  constexpr float kLog2E = 1.44269504f;
  V top = splat(*max);
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        V v = load_n(x + i, c);
        if (cap > 0) store_n(x + i, v = tanh(v / cap) * cap, c);
        const auto mask = static_cast<__mmask16>((1u << c) - 1);
        top = (V)_mm512_mask_max_ps((__m512)top, mask, (__m512)top, (__m512)v);
      });
  const float highest_now = highest(top), shift = -kLog2E * highest_now;
  V total{};
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const auto mask = static_cast<__mmask16>((1u << c) - 1);
        const V v = load_n(x + i, c);
        V e = power_of_two(v * kLog2E + shift);
        total = (V)_mm512_mask_add_ps((__m512)total, mask, (__m512)total, (__m512)e);
        if (cap > 0) e *= 1.0f - (v / cap) * (v / cap);
        _mm256_mask_storeu_epi16(out + i, mask, _mm512_cvtps_ph((__m512)e, _MM_FROUND_TO_NEAREST_INT));
      });
  *sum_so_far = *sum_so_far * expf(*max - highest_now) + sum(total);
  *max = highest_now;
}

void scaled_groups(i64 rows, i64 n, const float* factor, const std::uint16_t* x, i64 stride, std::uint16_t* out) {
  for (i64 row = 0; row < rows; row += kGroupRows, out += n * kGroupRows) {
    const i64 height = rows - row < kGroupRows ? rows - row : kGroupRows;
    for (i64 column = 0; column < n; column += 32) {
      const ColumnMasks mask = masks(n - column);
      __m512i v[16];
      for (i64 i = 0; i < kGroupRows; ++i) {
        if (i >= height) {
          v[i] = _mm512_setzero_si512();
          continue;
        }
        const std::uint16_t* at = x + (row + i) * stride + column;
        const __m512 by = _mm512_set1_ps(factor[row + i]);
        v[i] = two_narrow(_mm512_mul_ps(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask.of[0], at)), by),
                          _mm512_mul_ps(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask.of[1], at + 16)), by));
      }
      store_group(v, n - column < 32 ? (n - column) / 2 : 16, out + column * kGroupRows);
    }
  }
}

}  // namespace

GemmKernels gemm_kernels_avx512bf16() {
  return {.block = block, .groups = groups, .panels = panels, .logit_tile = logit_tile, .scaled_groups = scaled_groups};
}

}  // namespace mw::engine
#endif
