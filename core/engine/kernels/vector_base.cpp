// SPDX-License-Identifier: Apache-2.0
// Implements vector.h for the baseline instruction set.
#include "core/engine/kernels/vector_bodies.h"

namespace mw::engine {

const VectorKernels& vector_kernels_base() {
  static constexpr VectorKernels kKernels = kernels_of("base");
  return kKernels;
}

}  // namespace mw::engine
