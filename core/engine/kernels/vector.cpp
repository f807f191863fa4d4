// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/vector.h"

#include "core/engine/kernels/cpu.h"

namespace mw::engine {

const VectorKernels& vector_kernels() {
#if defined(__x86_64__)
  if (usable_cpu() >= Cpu::avx512) return vector_kernels_avx512();
  if (usable_cpu() >= Cpu::avx2) return vector_kernels_avx2();
#endif
  return vector_kernels_base();
}

}  // namespace mw::engine
