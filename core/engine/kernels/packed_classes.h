// SPDX-License-Identifier: Apache-2.0
// The packed kernels for one instruction set each (cpu.h); kernel_choice.cpp chooses among those of the architecture.
#pragma once
#include "core/engine/kernels/gemm_kernels.h"

namespace mw::engine {

const CpuKernels& kernels_base();
const CpuKernels& kernels_neon();
const CpuKernels& kernels_neon_dotprod();
const CpuKernels& kernels_neon_bf16();
const CpuKernels& kernels_avx2();
const CpuKernels& kernels_avx_vnni();
const CpuKernels& kernels_avx512();
const CpuKernels& kernels_avx512_vnni();
const CpuKernels& kernels_avx512_bf16();
const CpuKernels& kernels_amx();

}  // namespace mw::engine
