// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/packed.h"

#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {
namespace {

struct Kernels {
  const PackedKernels* packed = nullptr;
  const GemmKernels* gemm = nullptr;
};

Kernels usable_kernels() {
  switch (usable_cpu()) {
#if defined(__x86_64__)
    case Cpu::amx:
      return {&packed_kernels_amx(), &gemm_kernels_amx()};
    case Cpu::avx512_bf16:
      return {&packed_kernels_avx512bf16(), &gemm_kernels_avx512bf16()};
    case Cpu::avx512:
      return {&packed_kernels_avx512(), &gemm_kernels_avx512()};
    case Cpu::avx2:
      return {&packed_kernels_avx2(), &gemm_kernels_avx2()};
#elif defined(__aarch64__)
    case Cpu::neon_bf16:
      return {&packed_kernels_neon_bf16(), &gemm_kernels_neon_bf16()};
    case Cpu::neon_dotprod:
      return {&packed_kernels_neon_dotprod(), &gemm_kernels_neon_dotprod()};
    case Cpu::neon:
      return {&packed_kernels_neon(), &gemm_kernels_neon()};
#endif
    default:
      return {};
  }
}

}  // namespace

const PackedKernels* packed_kernels() {
  return usable_kernels().packed;
}

const GemmKernels* gemm_kernels() {
  return usable_kernels().gemm;
}

}  // namespace mw::engine
