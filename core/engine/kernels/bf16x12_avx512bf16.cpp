// SPDX-License-Identifier: Apache-2.0
// Decodes bf16 weights of 12 bits into panels, block by block into the L1 cache; see bf16x12.h.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {

void widen_bf16x12_block(i64 depth, const std::byte* block, std::uint16_t* out) {
  const auto& header = *reinterpret_cast<const Bf16x12Header*>(block);
  const __m512i base = _mm512_set1_epi16(static_cast<short>(header.base));
  const i64 count = depth * kPanelRows;
  _mm_prefetch(block + kBf16x12Ahead, _MM_HINT_T1);
  const std::byte* at = block + sizes::kBf16x12HeaderBytes;
  if (header.overflow) {
    for (i64 i = 0; i < count; i += 2 * kPairs, at += kBf16x12PairBytes) {
      for (int line = 0; line < 3; ++line) {
        _mm_prefetch(at + kBf16x12Ahead + 64 * line, _MM_HINT_T1);
        _mm512_storeu_si512(out + i + 32 * line, _mm512_loadu_si512(at + 64 * line));
      }
      _mm512_storeu_si512(out + i + 96, _mm512_loadu_si512(header.overflow + i / 4));
    }
    return;
  }
  for (i64 i = 0; i < count; i += 2 * kPairs, at += kBf16x12PairBytes) {
    for (int line = 0; line < 3; ++line) _mm_prefetch(at + kBf16x12Ahead + 64 * line, _MM_HINT_T1);
    __m512i of[4];
    unpack_bf16x12(at, base, of);
    for (int v = 0; v < 4; ++v) _mm512_storeu_si512(out + i + 32 * v, of[v]);
  }
  for (int i = 0; i < header.exception_count; ++i) out[header.exceptions[i].at] = header.exceptions[i].bits;
}

void widen_bf16x12_avx512bf16(i64 columns, i64 k, i64 begin, i64 depth, const std::byte* w, std::uint16_t* out) {
  for (i64 n = 0; n < columns; n += kPanelRows)
    for (i64 d = begin; d < begin + depth; d += kBf16x12Depth) {
      const i64 some = begin + depth - d < kBf16x12Depth ? begin + depth - d : kBf16x12Depth;
      widen_bf16x12_block(some, w + sizes::bf16x12_bytes(n, k) + sizes::bf16x12_bytes(kPanelRows, d),
                          out + n * depth + (d - begin) * kPanelRows);
    }
}

}  // namespace mw::engine
#endif
