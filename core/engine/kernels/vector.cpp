// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/vector.h"

namespace mw::engine {

const VectorKernels& vector_kernels() {
  static const VectorKernels& kernels = []() -> const VectorKernels& {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      return vector_kernels_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return vector_kernels_avx2();
#endif
    return vector_kernels_base();
  }();
  return kernels;
}

}  // namespace mw::engine
