// SPDX-License-Identifier: Apache-2.0
// Few rows against packed bf16 weights: the work of decoding, bound by reading the weights; see packed.h. Weights of 12
// bits are widened on their way to the first tile, and the second tile finds them in the L1 cache. A block with
// exceptions is widened into the L1 cache before the first tile.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

constexpr i64 kBlock = 64;               // pairs of depth: 8 KiB of a panel, which all rows use from L1
constexpr i64 kAhead = kBlock * kPairs;  // elements: the next block is prefetched into L2 while this one is used
constexpr int kTall = 12;                // rows whose sums fit the registers

// The lines of the next block that a tile prefetches: each of two tiles half of them, so that reading continues while
// the second computes.
enum Fetch { none = 0, even = 1, odd = 2, both = even | odd };

template <int R>
[[gnu::always_inline]] inline void load_sums(const float* sums, __m512 (&acc)[R][2]) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
    acc[r][0] = _mm512_load_ps(sums + r * kPanelRows), acc[r][1] = _mm512_load_ps(sums + r * kPanelRows + 16);
}
template <int R>
[[gnu::always_inline]] inline void store_sums(const __m512 (&acc)[R][2], float* sums) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
    _mm512_store_ps(sums + r * kPanelRows, acc[r][0]), _mm512_store_ps(sums + r * kPanelRows + 16, acc[r][1]);
}

// Rows [0, R) of a block; `sums` carries their sums from block to block.
template <int R, Fetch F>
void tile(i64 k, i64 pairs, const std::uint16_t* a, const std::uint16_t* b, float* sums) {
  __m512 acc[R][2];
  load_sums(sums, acc);
  for (i64 i = 0; i < pairs; ++i) {
    const std::uint16_t* at = b + i * kPairs;
    if (F & even) _mm_prefetch(at + kAhead, _MM_HINT_T1);
    if (F & odd) _mm_prefetch(at + kAhead + 32, _MM_HINT_T1);
    const __m512bh w[2] = {load_pairs(at), load_pairs(at + 32)};
    add_pair_of_depth(
        w, [&](int r) __attribute__((always_inline)) { return a + r * k + 2 * i; }, acc);
  }
  store_sums(acc, sums);
}

enum class Widened { dropped, kept };

// Rows [0, R) of a block of 12 bits without exceptions; `out` receives the widened block for another tile.
template <int R, Widened W>
void bf16x12_tile(i64 k, i64 pairs, const std::uint16_t* a, const std::byte* block, float* sums, std::uint16_t* out) {
  const __m512i base = _mm512_set1_epi16(static_cast<short>(reinterpret_cast<const Bf16x12Header*>(block)->base));
  __m512 acc[R][2];
  load_sums(sums, acc);
  _mm_prefetch(block + kBf16x12Ahead, _MM_HINT_T1);
  const std::byte* at = block + sizes::kBf16x12HeaderBytes;
  for (i64 i = 0; i < pairs; i += 2, at += kBf16x12PairBytes) {
    for (int line = 0; line < 3; ++line) _mm_prefetch(at + kBf16x12Ahead + 64 * line, _MM_HINT_T1);
    __m512i w[4];
    unpack_bf16x12(at, base, w);
    if (W == Widened::kept)
      for (int v = 0; v < 4; ++v) _mm512_store_si512(out + i * kPairs + 32 * v, w[v]);
    for (int pair = 0; pair < 2; ++pair) {
      const __m512bh both[2] = {(__m512bh)w[2 * pair], (__m512bh)w[2 * pair + 1]};
      add_pair_of_depth(
          both, [&](int r) __attribute__((always_inline)) { return a + r * k + 2 * (i + pair); }, acc);
    }
  }
  store_sums(acc, sums);
}

using Bf16x12Tile = void (*)(i64, i64, const std::uint16_t*, const std::byte*, float*, std::uint16_t*);
template <Widened W>
constexpr Bf16x12Tile kBf16x12Tiles[kTall + 1] = {nullptr,
                                                  bf16x12_tile<1, W>,
                                                  bf16x12_tile<2, W>,
                                                  bf16x12_tile<3, W>,
                                                  bf16x12_tile<4, W>,
                                                  bf16x12_tile<5, W>,
                                                  bf16x12_tile<6, W>,
                                                  bf16x12_tile<7, W>,
                                                  bf16x12_tile<8, W>,
                                                  bf16x12_tile<9, W>,
                                                  bf16x12_tile<10, W>,
                                                  bf16x12_tile<11, W>,
                                                  bf16x12_tile<12, W>};

using Tile = void (*)(i64, i64, const std::uint16_t*, const std::uint16_t*, float*);
template <Fetch F>
constexpr Tile kTiles[kTall + 1] = {nullptr,     tile<1, F>,  tile<2, F>, tile<3, F>, tile<4, F>,
                                    tile<5, F>,  tile<6, F>,  tile<7, F>, tile<8, F>, tile<9, F>,
                                    tile<10, F>, tile<11, F>, tile<12, F>};
constexpr Tile kFirst[] = {tile<6, even>, tile<7, even>, tile<8, even>};  // of two
constexpr Tile kSecond[] = {tile<7, odd>, tile<8, odd>};

// Visits the blocks of every panel in order; take(panel's first row, first pair, pairs, sums) adds one block.
template <class F>
[[gnu::always_inline]] inline void panel_by_panel(const GemmShape& shape, const TileOutput& out, F take) {
  const i64 rows = shape.m, columns = shape.n, k = shape.k, ldc = out.stride;
  const StoreMode store = out.store;
  float* const c = out.c;
  alignas(64) float sums[kMaxSkinnyRows * kPanelRows];
  for (i64 n = 0; n < columns; n += kPanelRows) {
    const ColumnMasks mask = masks(columns - n);
    for (i64 r = 0; r < rows; ++r)
      for (int v = 0; v < 2; ++v)
        _mm512_store_ps(sums + r * kPanelRows + 16 * v,
                        store == StoreMode::write ? _mm512_setzero_ps()
                                                  : _mm512_maskz_loadu_ps(mask.of[v], c + r * ldc + n + 16 * v));
    for (i64 i = 0; i < k / 2; i += kBlock) take(n, i, k / 2 - i < kBlock ? k / 2 - i : kBlock, sums);
    for (i64 r = 0; r < rows; ++r)
      for (int v = 0; v < 2; ++v)
        _mm512_mask_storeu_ps(c + r * ldc + n + 16 * v, mask.of[v], _mm512_load_ps(sums + r * kPanelRows + 16 * v));
  }
}

}  // namespace

void skinny_rows_avx512bf16(const GemmShape& shape, const std::uint16_t* a, const std::uint16_t* w,
                            const TileOutput& out) {
  const i64 rows = shape.m, k = shape.k, first = rows <= kTall ? rows : rows / 2, second = rows - first;
  panel_by_panel(shape, out, [&](i64 n, i64 i, i64 pairs, float* sums) {
    const std::uint16_t* b = w + n * k + i * kPairs;
    if (second == 0) return kTiles<both>[rows](k, pairs, a + 2 * i, b, sums);
    kFirst[first - 6](k, pairs, a + 2 * i, b, sums);
    kSecond[second - 7](k, pairs, a + first * k + 2 * i, b, sums + first * kPanelRows);
  });
}

void skinny_bf16x12_avx512bf16(const GemmShape& shape, const std::uint16_t* a, const std::byte* w,
                               const TileOutput& out) {
  static_assert(kBf16x12Depth == 2 * kBlock);
  alignas(64) std::uint16_t block[kBlock * kPairs];
  const i64 rows = shape.m, k = shape.k, first = rows <= kTall ? rows : rows / 2, second = rows - first;
  panel_by_panel(shape, out, [&](i64, i64 i, i64 pairs, float* sums) {
    const auto& header = *reinterpret_cast<const Bf16x12Header*>(w);
    if (header.overflow || header.exception_count > 0) {
      widen_bf16x12_block(2 * pairs, w, block);
      kTiles<none>[first](k, pairs, a + 2 * i, block, sums);
    } else {
      (second > 0 ? kBf16x12Tiles<Widened::kept> : kBf16x12Tiles<Widened::dropped>)[first](k, pairs, a + 2 * i, w, sums,
                                                                                           block);
    }
    w += sizes::bf16x12_bytes(kPanelRows, 2 * pairs);
    if (second > 0) kTiles<none>[second](k, pairs, a + first * k + 2 * i, block, sums + first * kPanelRows);
  });
}

}  // namespace mw::engine
#endif
