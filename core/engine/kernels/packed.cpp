// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/packed.h"

#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/packed_avx512bf16.h"

namespace mw::engine {

const PackedKernels* packed_kernels() {
#if defined(__x86_64__)
  if (usable_cpu() >= Cpu::avx512_bf16) return &packed_kernels_avx512bf16();
#endif
  return nullptr;
}

const GemmKernels* gemm_kernels() {
#if defined(__x86_64__)
  if (packed_kernels()) return &gemm_kernels_avx512bf16();
#endif
  return nullptr;
}

}  // namespace mw::engine
