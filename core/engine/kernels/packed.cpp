// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {
namespace {

const CpuKernels& kernels_of(Cpu cpu) {
  switch (cpu) {
#if defined(__x86_64__)
    case Cpu::amx:
      return kernels_amx();
    case Cpu::avx512_bf16:
      return kernels_avx512_bf16();
    case Cpu::avx512_vnni:
      return kernels_avx512_vnni();
    case Cpu::avx512:
      return kernels_avx512();
    case Cpu::avx_vnni:
      return kernels_avx_vnni();
    case Cpu::avx2:
      return kernels_avx2();
    default:
      return kernels_base();
#elif defined(__aarch64__)
    case Cpu::neon_bf16:
      return kernels_neon_bf16();
    case Cpu::neon_dotprod:
      return kernels_neon_dotprod();
    default:
      return kernels_neon();
#endif
  }
}

}  // namespace

const CpuKernels& cpu_kernels() {
  return kernels_of(usable_cpu());
}

}  // namespace mw::engine
