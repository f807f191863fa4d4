// SPDX-License-Identifier: Apache-2.0
// Vectors of bf16 pairs, for the files built with AVX-512 BF16. All in an unnamed namespace, as in vector_math.h.
#pragma once
#include <immintrin.h>

#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/vector_math.h"

namespace mw::engine {
namespace {

constexpr i64 kPairs = 2 * kPanelRows;  // elements of one pair of depth in a panel

[[gnu::always_inline]] inline __m512bh load_pairs(const std::uint16_t* p) {
  return (__m512bh)_mm512_loadu_si512(p);
}

[[gnu::always_inline]] inline __m512bh splat_pair(const std::uint16_t* p) {
  std::int32_t pair;
  memcpy(&pair, p, sizeof pair);
  return (__m512bh)_mm512_set1_epi32(pair);
}

struct ColumnMasks {  // masks of a tile's vectors: the last panel may be partial
  __mmask16 of[8];
};

[[gnu::always_inline]] inline ColumnMasks masks(i64 left) {
  ColumnMasks c;
  for (int v = 0; v < 8; ++v, left -= 16)
    c.of[v] = left >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>(left > 0 ? (1u << left) - 1 : 0);
  return c;
}

// The accumulators of a tile of R rows of V vectors. Loops over them are unrolled before the compiler places variables:
// otherwise it keeps all of them in memory before and after the loop over depth (about 1 % of prefill on Zen 4).
template <int R, int V>
[[gnu::always_inline]] inline void read_tile(const TileOutput& out, const ColumnMasks& columns, __m512 (&acc)[R][V]) {
  if (out.store == StoreMode::write) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = _mm512_setzero_ps();
    return;
  }
  const float* row = out.c;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r, row += out.stride)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc[r][v] = _mm512_maskz_loadu_ps(columns.of[v], row + 16 * v);
}

template <int R, int V>
[[gnu::always_inline]] inline void write_tile(const __m512 (&acc)[R][V], const ColumnMasks& columns,
                                              const TileOutput& out) {
  float* row = out.c;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r, row += out.stride)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) _mm512_mask_storeu_ps(row + 16 * v, columns.of[v], acc[r][v]);
}

// acc += one pair of depth: the pairs of A at pair(row) times V vectors of B.
template <int R, int V, class Pair>
[[gnu::always_inline]] inline void add_pair_of_depth(const __m512bh (&w)[V], Pair pair, __m512 (&acc)[R][V]) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const __m512bh x = splat_pair(pair(r));
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc[r][v] = _mm512_dpbf16_ps(acc[r][v], x, w[v]);
  }
}

[[gnu::always_inline]] inline __m256i narrow16(__m512 x) {
  return (__m256i)_mm512_cvtneps_pbh(x);
}

// Pairs of depth from two rows of 16: low words from `even`, high words from `odd`.
[[gnu::always_inline]] inline __m512i paired(__m256i even, __m256i odd) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

// 16 vectors of 16 dwords: rows become columns.
[[gnu::always_inline]] inline void transpose(__m512i v[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    v[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    v[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    v[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    v[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
  }
}

constexpr i64 kBf16x12PairBytes = 2 * kPairs * 3 / 2;  // bytes of two pairs of depth, bf16x12.h
// Prefetch distance, bytes: the next block is fetched into L2.
constexpr i64 kBf16x12Ahead = sizes::bf16x12_bytes(kPanelRows, kBf16x12Depth);
constexpr int kSelect = 0xca;  // vpternlog: bits of the second operand where the first has ones, else of the third

// Two pairs of depth: four vectors of bf16 from three vectors in memory.
[[gnu::always_inline]] inline void unpack_bf16x12(const std::byte* at, __m512i base, __m512i out[4]) {
  const auto bits = [](int mask) { return _mm512_set1_epi16(static_cast<short>(mask)); };
  const __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64), c = _mm512_loadu_si512(at + 128);
  __m512i fourth = _mm512_ternarylogic_epi32(bits(0x00f0), _mm512_srli_epi16(b, 7), _mm512_srli_epi16(a, 11), kSelect);
  fourth = _mm512_ternarylogic_epi32(bits(0x0700), _mm512_srli_epi16(c, 3), fourth, kSelect);
  fourth = _mm512_ternarylogic_epi32(bits(0x8000), _mm512_slli_epi16(c, 1), fourth, kSelect);
  const __m512i in_place = bits(0x87ff);
  out[0] = _mm512_add_epi16(_mm512_and_si512(a, in_place), base);
  out[1] = _mm512_add_epi16(_mm512_and_si512(b, in_place), base);
  out[2] = _mm512_add_epi16(_mm512_and_si512(c, in_place), base);
  out[3] = _mm512_add_epi16(fourth, base);
}

}  // namespace
}  // namespace mw::engine
