// SPDX-License-Identifier: Apache-2.0
// Implements packed_avx512bf16.h: few rows with the bits of AMX, for which a tile of 16 rows would mostly multiply
// zeros. TDPBF16PS (Intel SDM) adds the products of even and of odd depths of 32 apart, each with one rounding and
// denormals as zeros, and then both to the sum. FMAs do the same here; on the processors that have AMX they are faster
// than vdpbf16ps, too.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/onednn_gemm.h"
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

constexpr i64 kStepDepth = kFewRowsDepth;
static_assert(kFewRowsDepth == kAmxDepth && kAmxCopiedDepth % kBf16x12Depth == 0);

// Adds a depth of 32 to the sums [R, 32] of a panel. next(i, w) gives four vectors: depth 4 i to 4 i + 3. Unrolled by
// hand: GCC 12 would keep the sums in memory.
template <int R, class Next>
[[gnu::always_inline]] inline void add_step(const float* a, i64 a_stride, float* sums, Next next) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  __m512 even[R][2], odd[R][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v) even[r][v] = odd[r][v] = _mm512_setzero_ps();
  for (i64 i = 0; i < kStepDepth / 4; ++i) {
    __m512i w[4];
    next(i, w);
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      const __m512 e0 = _mm512_castsi512_ps(_mm512_slli_epi32(w[2 * p], 16)),
                   e1 = _mm512_castsi512_ps(_mm512_slli_epi32(w[2 * p + 1], 16)),
                   o0 = _mm512_castsi512_ps(_mm512_and_si512(w[2 * p], high)),
                   o1 = _mm512_castsi512_ps(_mm512_and_si512(w[2 * p + 1], high));
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const float* x = a + r * a_stride + 4 * i + 2 * p;
        const __m512 xe = _mm512_set1_ps(x[0]), xo = _mm512_set1_ps(x[1]);
        even[r][0] = _mm512_fmadd_ps(xe, e0, even[r][0]);
        even[r][1] = _mm512_fmadd_ps(xe, e1, even[r][1]);
        odd[r][0] = _mm512_fmadd_ps(xo, o0, odd[r][0]);
        odd[r][1] = _mm512_fmadd_ps(xo, o1, odd[r][1]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v) {
      float* const sum = sums + r * kPanelRows + 16 * v;
      _mm512_store_ps(sum, _mm512_add_ps(_mm512_load_ps(sum), _mm512_add_ps(even[r][v], odd[r][v])));
    }
}

template <int R>
void add_panel(const float* a, i64 a_stride, const std::uint16_t* panel, i64 depth, float* sums) {
  for (i64 d = 0; d < depth; d += kStepDepth)
    add_step<R>(a + d, a_stride, sums, [&](i64 i, __m512i* w) {
      for (int v = 0; v < 4; ++v) w[v] = _mm512_loadu_si512(panel + d * kPanelRows + i * 2 * kPairs + 32 * v);
    });
}

// A block of 12 bits without exceptions.
template <int R>
void add_bf16x12(const float* a, i64 a_stride, const std::byte* block, i64 depth, float* sums) {
  const __m512i base = _mm512_set1_epi16(static_cast<short>(reinterpret_cast<const Bf16x12Header*>(block)->base));
  _mm_prefetch(block + kBf16x12Ahead, _MM_HINT_T1);
  const std::byte* at = block + sizes::kBf16x12HeaderBytes;
  for (i64 d = 0; d < depth; d += kStepDepth)
    add_step<R>(a + d, a_stride, sums, [&](i64, __m512i* w) {
      for (int line = 0; line < 3; ++line) _mm_prefetch(at + kBf16x12Ahead + 64 * line, _MM_HINT_T1);
      unpack_bf16x12(at, base, w);
      at += kBf16x12PairBytes;
    });
}

using AddPanel = void (*)(const float*, i64, const std::uint16_t*, i64, float*);
constexpr AddPanel kAddPanel[kFewRows + 1] = {nullptr, add_panel<1>, add_panel<2>, add_panel<3>, add_panel<4>};
using AddBf16x12 = void (*)(const float*, i64, const std::byte*, i64, float*);
constexpr AddBf16x12 kAddBf16x12[kFewRows + 1] = {nullptr, add_bf16x12<1>, add_bf16x12<2>, add_bf16x12<3>,
                                                  add_bf16x12<4>};

void widen(i64 count, const std::uint16_t* from, float* to) {
  for (i64 i = 0; i < count; i += 16) {
    const __mmask16 some = masks(count - i).of[0];
    const __m512i v = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from + i)), 16);
    _mm512_mask_storeu_ps(to + i, some, _mm512_castsi512_ps(v));
  }
}

// The sums of a panel replace columns of C or are added to them.
void store(i64 rows, const float* sums, const ColumnMasks& mask, const TileOutput& out) {
  for (i64 r = 0; r < rows; ++r)
    for (int v = 0; v < 2; ++v) {
      float* const c = out.c + r * out.stride + 16 * v;
      __m512 sum = _mm512_load_ps(sums + r * kPanelRows + 16 * v);
      if (out.store == StoreMode::accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask.of[v], c));
      _mm512_mask_storeu_ps(c, mask.of[v], sum);
    }
}

}  // namespace

void fma_rows_amx(i64 rows, i64 columns, const Strip& strip, i64 depth, const TileOutput& out) {
  const DenormalsAreZeros as_amx_does;
  alignas(64) float a[kFewRows * kAmxMostDepth], sums[kFewRows * kPanelRows];
  for (i64 r = 0; r < rows; ++r) widen(depth, strip.a + r * strip.a_stride, a + r * depth);
  for (i64 n = 0; n < columns; n += kPanelRows) {
    for (float& sum : sums) sum = 0;
    kAddPanel[rows](a, depth, strip.b + n / kPanelRows * strip.b_stride, depth, sums);
    store(rows, sums, masks(columns - n), {out.c + n, out.stride, out.store});
  }
}

void fma_bf16x12_amx(i64 rows, i64 columns, const FewRows& a, const Bf16x12Part& w, const TileOutput& out) {
  const DenormalsAreZeros as_amx_does;
  alignas(64) std::uint16_t widened[kBf16x12Depth * kPanelRows];
  alignas(64) float sums[kFewRows * kPanelRows];
  widen(rows * w.depth, a.at, a.widened);
  const i64 deepest = amx_slice(w.depth);
  for (i64 n = 0; n < columns; n += kPanelRows) {
    const ColumnMasks mask = masks(columns - n);
    const std::byte* block = w.at + sizes::bf16x12_bytes(n, w.k) + sizes::bf16x12_bytes(kPanelRows, w.begin);
    for (i64 d = 0; d < w.depth; d += deepest) {
      const i64 end = d + deepest < w.depth ? d + deepest : w.depth;
      for (float& sum : sums) sum = 0;
      for (i64 at = d; at < end; at += kBf16x12Depth) {
        const i64 depth = end - at < kBf16x12Depth ? end - at : kBf16x12Depth;
        const auto& header = *reinterpret_cast<const Bf16x12Header*>(block);
        if (header.overflow || header.exception_count > 0) {
          widen_bf16x12_block(depth, block, widened);
          kAddPanel[rows](a.widened + at, w.depth, widened, depth, sums);
        } else {
          kAddBf16x12[rows](a.widened + at, w.depth, block, depth, sums);
        }
        block += sizes::bf16x12_bytes(kPanelRows, depth);
      }
      store(rows, sums, mask, {out.c + n, out.stride, d > 0 ? StoreMode::accumulate : out.store});
    }
  }
}

}  // namespace mw::engine
#endif
