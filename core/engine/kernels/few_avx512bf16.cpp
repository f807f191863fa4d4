// SPDX-License-Identifier: Apache-2.0
// Few rows against packed bf16 weights: the work of decoding, bound by reading the weights; see packed.h.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/packed_table.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

constexpr i64 kBlock = 64;               // pairs of depth: 8 KiB of a panel, which all rows use from L1
constexpr i64 kAhead = kBlock * kPairs;  // elements: the next block comes, into L2, while this one is used
constexpr int kTall = 12;                // rows whose sums fit the registers

// Rows [0, R) of a block, whose sums go through `sums` from block to block. The block's Part-th of Parts tiles fetches
// its share of the next one, so that reading goes on while later tiles compute.
template <int R, int Part, int Parts>
void tile(i64 k, i64 pairs, const std::uint16_t* a, const std::uint16_t* b, float* sums) {
  __m512 acc[R][2];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v) acc[r][v] = _mm512_load_ps(sums + r * kPanelRows + 16 * v);
  for (i64 i = 0; i < pairs; ++i) {
    const std::uint16_t* at = b + i * kPairs;
    if (Part == 0) _mm_prefetch(at + kAhead, _MM_HINT_T1);
    if (Part == Parts - 1) _mm_prefetch(at + kAhead + 32, _MM_HINT_T1);
    const __m512bh w0 = load_pairs(at), w1 = load_pairs(at + 32);
    for (int r = 0; r < R; ++r) {
      const __m512bh x = splat_pair(a + r * k + 2 * i);
      acc[r][0] = _mm512_dpbf16_ps(acc[r][0], x, w0);
      acc[r][1] = _mm512_dpbf16_ps(acc[r][1], x, w1);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v) _mm512_store_ps(sums + r * kPanelRows + 16 * v, acc[r][v]);
}

using Tile = void (*)(i64, i64, const std::uint16_t*, const std::uint16_t*, float*);
constexpr Tile kOnly[kTall + 1] = {nullptr,        tile<1, 0, 1>,  tile<2, 0, 1>, tile<3, 0, 1>, tile<4, 0, 1>,
                                   tile<5, 0, 1>,  tile<6, 0, 1>,  tile<7, 0, 1>, tile<8, 0, 1>, tile<9, 0, 1>,
                                   tile<10, 0, 1>, tile<11, 0, 1>, tile<12, 0, 1>};
constexpr Tile kFirst[] = {tile<6, 0, 2>, tile<7, 0, 2>, tile<8, 0, 2>};  // of two
constexpr Tile kSecond[] = {tile<7, 1, 2>, tile<8, 1, 2>};

}  // namespace

void few_rows_avx512bf16(i64 rows, i64 columns, i64 k, const std::uint16_t* a, const std::uint16_t* w, float* c,
                         i64 ldc, Store store) {
  alignas(64) float sums[kDecodedRows * kPanelRows];
  const i64 first = rows <= kTall ? rows : rows / 2, second = rows - first;
  for (i64 n = 0; n < columns; n += kPanelRows) {
    const Columns mask = masks(columns - n);
    for (i64 r = 0; r < rows; ++r)
      for (int v = 0; v < 2; ++v)
        _mm512_store_ps(
            sums + r * kPanelRows + 16 * v,
            store == Store::write ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask.of[v], c + r * ldc + n + 16 * v));
    for (i64 i = 0; i < k / 2; i += kBlock) {
      const i64 pairs = k / 2 - i < kBlock ? k / 2 - i : kBlock;
      const std::uint16_t* b = w + n * k + i * kPairs;
      if (second == 0) {
        kOnly[rows](k, pairs, a + 2 * i, b, sums);
      } else {
        kFirst[first - 6](k, pairs, a + 2 * i, b, sums);
        kSecond[second - 7](k, pairs, a + first * k + 2 * i, b, sums + first * kPanelRows);
      }
    }
    for (i64 r = 0; r < rows; ++r)
      for (int v = 0; v < 2; ++v)
        _mm512_mask_storeu_ps(c + r * ldc + n + 16 * v, mask.of[v], _mm512_load_ps(sums + r * kPanelRows + 16 * v));
  }
}

}  // namespace mw::engine
#endif
