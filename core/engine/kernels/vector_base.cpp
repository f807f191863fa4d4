// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/vector_impl.h"

namespace mw::engine {

const VectorKernels& vector_kernels_base() {
  static constexpr VectorKernels kKernels = kernels_of("base");
  return kKernels;
}

}  // namespace mw::engine
