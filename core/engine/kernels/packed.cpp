// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/packed.h"

#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {

const PackedKernels* packed_kernels() {
#if defined(__x86_64__)
  switch (usable_cpu()) {
    case Cpu::amx:
      return &packed_kernels_amx();
    case Cpu::avx512_bf16:
      return &packed_kernels_avx512bf16();
    case Cpu::avx512:
      return &packed_kernels_avx512();
    case Cpu::avx2:
      return &packed_kernels_avx2();
    default:
      break;
  }
#elif defined(__aarch64__)
  switch (usable_cpu()) {
    case Cpu::neon_bf16:
      return &packed_kernels_neon_bf16();
    case Cpu::neon_dotprod:
      return &packed_kernels_neon_dotprod();
    case Cpu::neon:
      return &packed_kernels_neon();
    default:
      break;
  }
#endif
  return nullptr;
}

const GemmKernels* gemm_kernels() {
#if defined(__x86_64__)
  switch (usable_cpu()) {
    case Cpu::amx:
      return &gemm_kernels_amx();
    case Cpu::avx512_bf16:
      return &gemm_kernels_avx512bf16();
    case Cpu::avx512:
      return &gemm_kernels_avx512();
    case Cpu::avx2:
      return &gemm_kernels_avx2();
    default:
      break;
  }
#elif defined(__aarch64__)
  switch (usable_cpu()) {
    case Cpu::neon_bf16:
      return &gemm_kernels_neon_bf16();
    case Cpu::neon_dotprod:
      return &gemm_kernels_neon_dotprod();
    case Cpu::neon:
      return &gemm_kernels_neon();
    default:
      break;
  }
#endif
  return nullptr;
}

}  // namespace mw::engine
