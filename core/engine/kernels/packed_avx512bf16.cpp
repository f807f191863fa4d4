// SPDX-License-Identifier: Apache-2.0
// Built with AVX-512 BF16; see packed.h. 32 columns and up to 12 rows fill the registers with accumulators; fewer rows
// take more panels, so that enough independent sums hide the latency of vdpbf16ps.
#if defined(__AVX512BF16__)
#include <immintrin.h>

#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

constexpr i64 kAhead = 16 * kPairs;  // prefetch distance, elements

struct TilePlace {  // first row of A and first panel of B that a tile multiplies
  i64 row, panel;
};

template <int R, int P>
void tile(const Strip* strips, int count, TilePlace place, const ColumnMasks& columns, const TileOutput& out) {
  constexpr int kVectors = 2 * P;
  __m512 acc[R][kVectors];
  read_tile(out, columns, acc);
  for (int s = 0; s < count; ++s) {
    const Strip& strip = strips[s];
    const std::uint16_t* a = strip.a + place.row * strip.a_stride;
    const std::uint16_t* b = strip.b + place.panel * strip.b_stride;
    for (i64 k = 0; k < strip.steps; ++k) {
      __m512bh w[kVectors];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const std::uint16_t* at = b + p * strip.b_stride + k * kPairs;
        w[2 * p] = load_pairs(at);
        w[2 * p + 1] = load_pairs(at + 32);
        if (R <= 6) {
          _mm_prefetch(at + kAhead, _MM_HINT_T0);
          _mm_prefetch(at + kAhead + 32, _MM_HINT_T0);
        }
      }
      add_pair_of_depth(
          w, [&](int r) __attribute__((always_inline)) { return a + r * strip.a_stride + 2 * k; }, acc);
    }
  }
  write_tile(acc, columns, out);
}

using Tile = void (*)(const Strip*, int, TilePlace, const ColumnMasks&, const TileOutput&);
constexpr int kMostRows = 12;
constexpr Tile kTile1[kMostRows + 1] = {nullptr,     tile<1, 1>,  tile<2, 1>, tile<3, 1>, tile<4, 1>,
                                        tile<5, 1>,  tile<6, 1>,  tile<7, 1>, tile<8, 1>, tile<9, 1>,
                                        tile<10, 1>, tile<11, 1>, tile<12, 1>};
constexpr Tile kTile2[] = {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>};
constexpr Tile kTile4[] = {nullptr, tile<1, 4>, tile<2, 4>};

void block(i64 rows, i64 columns, const Strip* strips, int count, const TileOutput& out) {
  const i64 tiles = (rows + kMostRows - 1) / kMostRows, panels = (columns + kPanelRows - 1) / kPanelRows;
  const i64 tallest = (rows + tiles - 1) / tiles;
  const i64 widest = tallest <= 2 ? 4 : tallest <= 6 ? 2 : 1;
  for (i64 p = 0; p < panels;) {
    i64 width = widest;
    while (p + width > panels) width /= 2;
    const ColumnMasks mask = masks(columns - p * kPanelRows);
    for (i64 t = 0; t < tiles; ++t) {
      const i64 row = rows * t / tiles, height = rows * (t + 1) / tiles - row;
      const Tile fn = width == 4 ? kTile4[height] : width == 2 ? kTile2[height] : kTile1[height];
      fn(strips, count, {row, p}, mask, {out.c + row * out.stride + p * kPanelRows, out.stride, out.store});
    }
    p += width;
  }
}

void lay_out_rows(i64 rows, i64 k, float scale, MatrixView x, LaidOutRows out) {
  const __m512 by = _mm512_set1_ps(scale);
  for (i64 r = 0; r < rows; ++r) {
    const float* in = x.data + r * x.stride;
    std::uint16_t* to = out.data + r * out.stride;
    i64 i = 0;
    for (; i + 16 <= k; i += 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), narrow16(_mm512_mul_ps(_mm512_loadu_ps(in + i), by)));
    if (i == k) continue;
    const auto some = static_cast<__mmask16>((1u << (k - i)) - 1),
               even = static_cast<__mmask16>((1u << ((k - i + 1) / 2 * 2)) - 1);
    _mm256_mask_storeu_epi16(to + i, even, narrow16(_mm512_mul_ps(_mm512_maskz_loadu_ps(some, in + i), by)));
  }
}

void pack_columns(i64 depth, i64 columns, const float* b, i64 b_stride, std::uint16_t* out) {
  const i64 pairs = (depth + 1) / 2;
  for (i64 first = 0; first < columns; first += kPanelRows)
    for (i64 pair = 0; pair < pairs; ++pair) {
      const float* row = b + 2 * pair * b_stride + first;
      std::uint16_t* to = out + first * 2 * pairs + pair * kPairs;
      const ColumnMasks mask = masks(columns - first);
      for (int half = 0; half < 2; ++half) {
        const __m512 even = _mm512_maskz_loadu_ps(mask.of[half], row + 16 * half);
        const __m512 odd = 2 * pair + 1 < depth ? _mm512_maskz_loadu_ps(mask.of[half], row + b_stride + 16 * half)
                                                : _mm512_setzero_ps();
        _mm512_storeu_si512(to + 32 * half, paired(narrow16(even), narrow16(odd)));
      }
    }
}

void lay_out_columns(i64 rows, i64 columns, float scale, MatrixView x, LaidOutRows out) {
  const __m512 by = _mm512_set1_ps(scale);
  for (i64 r = 0; r < rows; r += 16) {
    const i64 there = rows - r < 16 ? rows - r : 16;
    const auto even = static_cast<__mmask16>((1u << ((there + 1) / 2 * 2)) - 1);
    for (i64 c = 0; c < columns; c += 16) {
      const ColumnMasks mask = masks(columns - c);
      __m512i v[16];
      for (i64 i = 0; i < 16; ++i)
        v[i] = i < there ? _mm512_castps_si512(
                               _mm512_mul_ps(_mm512_maskz_loadu_ps(mask.of[0], x.data + (r + i) * x.stride + c), by))
                         : _mm512_setzero_si512();
      transpose(v);
      const i64 wide = columns - c < 16 ? columns - c : 16;
      for (i64 i = 0; i < wide; ++i)
        _mm256_mask_storeu_epi16(out.data + (c + i) * out.stride + r, even, narrow16(_mm512_castsi512_ps(v[i])));
    }
  }
}

void pack_rows(i64 columns, i64 k, const float* b, i64 b_stride, std::uint16_t* out) {
  const i64 pairs = (k + 1) / 2;
  for (i64 n = 0; n < (columns + 15) / 16 * 16; n += 16)
    for (i64 pair = 0; pair < pairs; pair += 16) {
      const i64 left = k - 2 * pair;
      const ColumnMasks mask = masks(left);
      __m512i v[16];
      for (int i = 0; i < 16; ++i) {
        const float* row = b + (n + i) * b_stride + 2 * pair;
        const bool there = n + i < columns;
        const __m512 lo = there ? _mm512_maskz_loadu_ps(mask.of[0], row) : _mm512_setzero_ps();
        const __m512 hi = there ? _mm512_maskz_loadu_ps(mask.of[1], row + 16) : _mm512_setzero_ps();
        v[i] = _mm512_inserti64x4(_mm512_castsi256_si512(narrow16(lo)), narrow16(hi), 1);
      }
      transpose(v);
      std::uint16_t* to = out + n / kPanelRows * pairs * kPairs + n % kPanelRows * 2 + pair * kPairs;
      const int some = pairs - pair < 16 ? static_cast<int>(pairs - pair) : 16;
      for (int i = 0; i < some; ++i) _mm512_storeu_si512(to + i * kPairs, v[i]);
    }
  if ((columns + 15) / 16 % 2 == 0) return;
  std::uint16_t* last = out + columns / kPanelRows * pairs * kPairs + 32;  // the second half of the last panel
  for (i64 pair = 0; pair < pairs; ++pair) _mm512_storeu_si512(last + pair * kPairs, _mm512_setzero_si512());
}

void transpose_panels(const std::uint16_t* w, i64 k_total, const PanelBlock& part, std::uint16_t* out) {
  const i64 begin = part.begin, depth = part.depth, first = part.first_column, columns = part.columns;
  alignas(64) static constexpr std::uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low = _mm512_load_si512(kLow), high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  for (i64 n = begin; n < begin + depth; n += 16) {
    const std::uint16_t* panel = w + packed_index(k_total, n, first);
    for (i64 k = 0; k < columns; k += kPanelRows) {
      const i64 there = columns - k < kPanelRows ? (columns - k) / 2 : 16;  // pairs of the source, K is even
      __m512i v[16];
      for (i64 i = 0; i < 16; ++i)
        v[i] = i < there ? _mm512_loadu_si512(panel + (k / 2 + i) * kPairs) : _mm512_setzero_si512();
      transpose(v);
      std::uint16_t* to = out + k * depth + (n - begin) * kPanelRows;
      for (int i = 0; i < 8; ++i) {
        _mm512_storeu_si512(to + i * kPairs, _mm512_permutex2var_epi16(v[2 * i], low, v[2 * i + 1]));
        _mm512_storeu_si512(to + i * kPairs + 32, _mm512_permutex2var_epi16(v[2 * i], high, v[2 * i + 1]));
      }
    }
  }
}

}  // namespace

const CpuKernels& kernels_avx512_bf16() {
  static const CpuKernels kernels{.bf16 = {.instructions = "vdpbf16ps",
                                           .packed = {.block = block,
                                                      .skinny_rows = skinny_rows_avx512bf16,
                                                      .lay_out_rows = lay_out_rows,
                                                      .lay_out_columns = lay_out_columns,
                                                      .pack_rows = pack_rows,
                                                      .pack_columns = pack_columns,
                                                      .transpose_panels = transpose_panels,
                                                      .skinny_bf16x12 = skinny_bf16x12_avx512bf16,
                                                      .quantise_rows = quantise_rows_avx512bf16,
                                                      .int8_rows = int8_rows_avx512bf16,
                                                      .widen_int8 = widen_int8_avx512bf16,
                                                      .widen_bf16x12 = widen_bf16x12_avx512bf16},
                                           .gemm = gemm_kernels_avx512bf16()},
                                  .f32 = kernels_avx512_vnni().f32,
                                  .int8_instructions = kernels_avx512_vnni().int8_instructions};
  return kernels;
}

}  // namespace mw::engine
#endif
