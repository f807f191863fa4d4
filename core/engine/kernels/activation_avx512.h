// SPDX-License-Identifier: Apache-2.0
// Activations of a row, normalised if the operand has norms, for the files built with AVX-512 BF16. In an unnamed
// namespace, as in vector_math.h.
#pragma once
#include <immintrin.h>

#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

[[gnu::always_inline]] inline __m512 activation(const Activations& x, const float* at, i64 column, float inv,
                                                __mmask16 some) {
  const __m512 v = _mm512_maskz_loadu_ps(some, at + column);
  if (!x.inv) return v;
  const __m512 gain = _mm512_add_ps(_mm512_maskz_loadu_ps(some, x.gain.w + column), _mm512_set1_ps(x.gain.offset));
  return _mm512_mul_ps(_mm512_mul_ps(v, _mm512_set1_ps(inv)), gain);
}

}  // namespace
}  // namespace mw::engine
