// SPDX-License-Identifier: Apache-2.0
// Implements packed.h and gemm_kernels.h for AVX-512 without its bf16 instructions.
#if defined(__AVX512F__)
#include "core/engine/kernels/packed_bodies.h"

namespace mw::engine {

const PackedKernels& packed_kernels_avx512() {
  static constexpr PackedKernels kKernels =
      packed_kernels_of("AVX-512 FMA on packed bf16 weights, in 12 bits for inference",
                        "AVX-512 vpmaddwd on packed int8 weights, FMA from 25 rows on");
  return kKernels;
}

const GemmKernels& gemm_kernels_avx512() {
  static constexpr GemmKernels kKernels = gemm_kernels_of();
  return kKernels;
}

}  // namespace mw::engine
#endif
