// SPDX-License-Identifier: Apache-2.0
// bf16 weights of 12 bits back in panels, block by block into the L1 cache; see slim.h.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/packed_table.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {

void widen_slim_block(i64 depth, const std::byte* block, std::uint16_t* out) {
  const auto& header = *reinterpret_cast<const SlimHeader*>(block);
  const __m512i base = _mm512_set1_epi16(static_cast<short>(header.base));
  const i64 count = depth * kPanelRows;
  _mm_prefetch(block + kSlimAhead, _MM_HINT_T1);
  const std::byte* at = block + sizes::kSlimHeader;
  if (header.rest) {
    for (i64 i = 0; i < count; i += 2 * kPairs, at += kSlimPairs) {
      for (int line = 0; line < 3; ++line) {
        _mm_prefetch(at + kSlimAhead + 64 * line, _MM_HINT_T1);
        _mm512_storeu_si512(out + i + 32 * line, _mm512_loadu_si512(at + 64 * line));
      }
      _mm512_storeu_si512(out + i + 96, _mm512_loadu_si512(header.rest + i / 4));
    }
    return;
  }
  for (i64 i = 0; i < count; i += 2 * kPairs, at += kSlimPairs) {
    for (int line = 0; line < 3; ++line) _mm_prefetch(at + kSlimAhead + 64 * line, _MM_HINT_T1);
    __m512i of[4];
    unslim(at, base, of);
    for (int v = 0; v < 4; ++v) _mm512_storeu_si512(out + i + 32 * v, of[v]);
  }
  for (int i = 0; i < header.odd_count; ++i) out[header.odd[i].at] = header.odd[i].bits;
}

void widen_slim_avx512bf16(i64 columns, i64 k, i64 begin, i64 depth, const std::byte* w, std::uint16_t* out) {
  for (i64 n = 0; n < columns; n += kPanelRows)
    for (i64 d = begin; d < begin + depth; d += kSlimDepth) {
      const i64 some = begin + depth - d < kSlimDepth ? begin + depth - d : kSlimDepth;
      widen_slim_block(some, w + sizes::slim_bytes(n, k) + sizes::slim_bytes(kPanelRows, d),
                       out + n * depth + (d - begin) * kPanelRows);
    }
}

}  // namespace mw::engine
#endif
