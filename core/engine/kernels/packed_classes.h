// SPDX-License-Identifier: Apache-2.0
// The builds of the packed kernels for one instruction set each; packed.cpp chooses among them.
#pragma once
#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/kernels/packed.h"

namespace mw::engine {

const PackedKernels& packed_kernels_neon();
const GemmKernels& gemm_kernels_neon();
const PackedKernels& packed_kernels_neon_dotprod();
const GemmKernels& gemm_kernels_neon_dotprod();
const PackedKernels& packed_kernels_neon_bf16();
const GemmKernels& gemm_kernels_neon_bf16();
const PackedKernels& packed_kernels_avx2();
const GemmKernels& gemm_kernels_avx2();
const PackedKernels& packed_kernels_avx512();
const GemmKernels& gemm_kernels_avx512();
const PackedKernels& packed_kernels_avx512bf16();
const GemmKernels& gemm_kernels_avx512bf16();
const PackedKernels& packed_kernels_amx();
const GemmKernels& gemm_kernels_amx();

}  // namespace mw::engine
