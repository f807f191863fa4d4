// SPDX-License-Identifier: Apache-2.0
// Implements packed.h and gemm_kernels.h for the NEON instructions that every ARM64 processor has.
#if defined(__aarch64__)
#include "core/engine/kernels/packed_bodies.h"

namespace mw::engine {

const PackedKernels& packed_kernels_neon() {
  static constexpr PackedKernels kKernels =
      packed_kernels_of("NEON FMA on packed bf16 weights, in 12 bits for inference",
                        "NEON multiplication on packed int8 weights, FMA from 25 rows on");
  return kKernels;
}

const GemmKernels& gemm_kernels_neon() {
  static constexpr GemmKernels kKernels = gemm_kernels_of();
  return kKernels;
}

}  // namespace mw::engine
#endif
