// SPDX-License-Identifier: Apache-2.0
// int8 weights with AVX-512 BF16 and VNNI; see packed.h.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

constexpr i64 kAhead = 8192;  // prefetch distance, bytes

[[gnu::always_inline]] inline __m512 widened_scales(const std::uint16_t* p) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
}
[[gnu::always_inline]] inline __m512i load_int8_pairs(const std::int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// Panels are read one after the other, as the prefetches expect. Few rows take two sets of sums, so that enough of them
// are independent; sums of integers are exact in any order.
template <int R>
void int8_tile(i64 k, const std::int16_t* a, const float* a_scales, Int8Weight w, const Columns& columns,
               const TileOutput& out) {
  constexpr int kSets = R <= 3 ? 2 : 1;
  float* const c = out.c;
  const i64 ldc = out.stride;
  const i64 groups = groups_of(k);
  __m512 sum[R][2];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v)
      sum[r][v] =
          out.store == Store::write ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(columns.of[v], c + r * ldc + 16 * v);
  for (i64 g = 0; g < groups; ++g) {
    __m512i acc[kSets][R][2];
    for (int s = 0; s < kSets; ++s)
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < 2; ++v) acc[s][r][v] = _mm512_setzero_si512();
    const auto add_pair = [&](i64 i, __m512i(&to)[R][2]) __attribute__((always_inline)) {
      const std::int8_t* at = w.at + i * kPanelRows;
      _mm_prefetch(at + kAhead, _MM_HINT_T1);
      const __m512i q[2] = {load_int8_pairs(at), load_int8_pairs(at + 32)};
      for (int r = 0; r < R; ++r) {
        std::int32_t pair;
        memcpy(&pair, a + r * k + i, sizeof pair);
        const __m512i x = _mm512_set1_epi32(pair);
        for (int v = 0; v < 2; ++v) to[r][v] = _mm512_dpwssd_epi32(to[r][v], q[v], x);
      }
    };
    const i64 end = (g + 1) * kGroup < k ? (g + 1) * kGroup : k;
    i64 i = g * kGroup;
    for (; i + 2 * kSets <= end; i += 2 * kSets)
      for (int s = 0; s < kSets; ++s) add_pair(i + 2 * s, acc[s]);
    for (; i < end; i += 2) add_pair(i, acc[0]);
    for (int v = 0; v < 2; ++v) {
      const __m512 scale = widened_scales(w.scales + g * kPanelRows + 16 * v);
      for (int r = 0; r < R; ++r) {
        __m512i total = acc[0][r][v];
        for (int s = 1; s < kSets; ++s) total = _mm512_add_epi32(total, acc[s][r][v]);
        const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(a_scales[r * groups + g]));
        sum[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), both, sum[r][v]);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v) _mm512_mask_storeu_ps(c + r * ldc + 16 * v, columns.of[v], sum[r][v]);
}

using Int8Tile = void (*)(i64, const std::int16_t*, const float*, Int8Weight, const Columns&, const TileOutput&);
constexpr Int8Tile kInt8Tiles[] = {nullptr,      int8_tile<1>, int8_tile<2>, int8_tile<3>, int8_tile<4>,
                                   int8_tile<5>, int8_tile<6>, int8_tile<7>, int8_tile<8>};
constexpr i64 kMostInt8Rows = 8;

}  // namespace

void quantise_rows_avx512bf16(i64 rows, i64 k, const float* x, std::int16_t* out, float* scales) {
  for (i64 r = 0; r < rows; ++r)
    for (i64 first = 0; first < k; first += kGroup) {
      const i64 count = k - first < kGroup ? k - first : kGroup;
      const float* in = x + r * k + first;
      V largest{};
      for_vectors(
          count, [&](i64 i, i64 c) __attribute__((always_inline)) {
            largest = larger(largest, (V)_mm512_abs_ps((__m512)load_n(in + i, c)));
          });
      const float top = highest(largest), scale = top / 32767.0f, by = top > 0 ? 32767.0f / top : 0.0f;
      for_vectors(
          count, [&](i64 i, i64 c) __attribute__((always_inline)) {
            const __m512i whole = _mm512_cvtps_epi32((__m512)(load_n(in + i, c) * by));
            _mm256_mask_storeu_epi16(out + r * k + first + i, static_cast<__mmask16>((1u << c) - 1),
                                     _mm512_cvtsepi32_epi16(whole));
          });
      scales[r * groups_of(k) + first / kGroup] = scale;
    }
}

void int8_rows_avx512bf16(const GemmShape& shape, const std::int16_t* a, const float* a_scales, Int8Weight w,
                          const TileOutput& out) {
  const i64 rows = shape.m, columns = shape.n, k = shape.k;
  const i64 tiles = (rows + kMostInt8Rows - 1) / kMostInt8Rows, panels = (columns + kPanelRows - 1) / kPanelRows;
  for (i64 p = 0; p < panels; ++p) {
    const Columns mask = masks(columns - p * kPanelRows);
    const Int8Weight panel{w.at + p * kPanelRows * k, w.scales + p * groups_of(k) * kPanelRows};
    for (i64 t = 0; t < tiles; ++t) {
      const i64 row = rows * t / tiles, height = rows * (t + 1) / tiles - row;
      kInt8Tiles[height](k, a + row * k, a_scales + row * groups_of(k), panel, mask,
                         {out.c + row * out.stride + p * kPanelRows, out.stride, out.store});
    }
  }
}

void widen_int8_avx512bf16(i64 columns, i64 k, i64 begin, i64 depth, Int8Weight w, std::uint16_t* out) {
  for (i64 n = 0; n < columns; n += kPanelRows)
    for (i64 i = begin; i < begin + depth; i += 2)
      for (int half = 0; half < 2; ++half) {
        const __m512i pairs = load_int8_pairs(w.at + n * k + i * kPanelRows + 32 * half);
        const __m512 scale = widened_scales(w.scales + scale_index(k, n, i) + 16 * half);
        const __m512 even = _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16));
        const __m512 odd = _mm512_cvtepi32_ps(_mm512_srai_epi32(pairs, 16));
        std::uint16_t* to = out + n * depth + (i - begin) * kPanelRows + 32 * half;
        _mm512_storeu_si512(to, paired(narrow16(_mm512_mul_ps(even, scale)), narrow16(_mm512_mul_ps(odd, scale))));
      }
}

}  // namespace mw::engine
#endif
