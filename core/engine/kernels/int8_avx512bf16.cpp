// SPDX-License-Identifier: Apache-2.0
// int8 weights with AVX-512 BF16 and VNNI; see packed.h.
#if defined(__AVX512BF16__)
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_int8.h"

namespace mw::engine {

void quantise_rows_avx512bf16(i64 rows, i64 k, const float* x, std::int16_t* out, float* scales) {
  quantise_rows(rows, k, x, out, scales);
}

void int8_rows_avx512bf16(const GemmShape& shape, const std::int16_t* a, const float* a_scales, Int8Weight w,
                          const TileOutput& out) {
  int8_rows(shape, a, a_scales, w, out);
}

void widen_int8_avx512bf16(i64 columns, i64 k, i64 begin, i64 depth, Int8Weight w, std::uint16_t* out) {
  widen_int8(columns, k, begin, depth, w, out);
}

}  // namespace mw::engine
#endif
