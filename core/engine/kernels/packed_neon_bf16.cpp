// SPDX-License-Identifier: Apache-2.0
// Implements packed.h and gemm_kernels.h for NEON and dot products of bf16 and of bytes (FEAT_BF16, FEAT_I8MM).
#if defined(__aarch64__)
#include "core/engine/kernels/packed_bodies.h"

namespace mw::engine {

const PackedKernels& packed_kernels_neon_bf16() {
  static constexpr PackedKernels kKernels =
      packed_kernels_of("bfdot on packed bf16 weights, in 12 bits for inference",
                        "sdot and usdot on packed int8 weights, bfdot from 25 rows on");
  return kKernels;
}

const GemmKernels& gemm_kernels_neon_bf16() {
  static constexpr GemmKernels kKernels = gemm_kernels_of();
  return kKernels;
}

}  // namespace mw::engine
#endif
