// SPDX-License-Identifier: Apache-2.0
// The packed kernels' only build; packed.cpp decides whether the processor may run them.
#pragma once
#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/wide.h"

namespace mw::engine {

const PackedKernels& packed_kernels_avx512bf16();
const WideKernels& wide_kernels_avx512bf16();

}  // namespace mw::engine
