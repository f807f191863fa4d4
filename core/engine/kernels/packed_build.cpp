// SPDX-License-Identifier: Apache-2.0
// packed.h and gemm_kernels.h for one instruction set: CMake compiles this file once for each, with its flags and with
// MW_KERNELS as the name of the function.
#if defined(MW_KERNELS)
#include "core/engine/kernels/packed_bodies.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {

const CpuKernels& MW_KERNELS() {
  return kKernels;
}

}  // namespace mw::engine
#endif
