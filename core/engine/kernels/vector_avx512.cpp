// SPDX-License-Identifier: Apache-2.0
// Implements vector.h for AVX-512.
#include "core/engine/kernels/vector_bodies.h"

namespace mw::engine {

const VectorKernels& vector_kernels_avx512() {
  static constexpr VectorKernels kKernels = kernels_of("avx512");
  return kKernels;
}

}  // namespace mw::engine
