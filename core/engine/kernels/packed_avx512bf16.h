// SPDX-License-Identifier: Apache-2.0
// The kernels built for AVX-512 BF16.
#pragma once
#include "core/engine/kernels/bf16x12.h"
#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {

// Kernels in other files.
GemmKernels gemm_kernels_avx512bf16();
void skinny_rows_avx512bf16(const GemmShape& shape, const std::uint16_t* a, const std::uint16_t* w,
                            const TileOutput& out);
void quantise_rows_avx512bf16(std::int64_t rows, std::int64_t k, const float* x, std::int16_t* out, float* scales);
void int8_rows_avx512bf16(const GemmShape& shape, const std::int16_t* a, const float* a_scales, Int8Weight w,
                          const TileOutput& out);
void widen_int8_avx512bf16(std::int64_t columns, std::int64_t k, std::int64_t begin, std::int64_t depth, Int8Weight w,
                           std::uint16_t* out);
void skinny_bf16x12_avx512bf16(const GemmShape& shape, const std::uint16_t* a, const std::byte* w,
                               const TileOutput& out);
// `depth` is a multiple of kFewRowsDepth and at most kAmxMostDepth; strip.steps is not read.
void fma_rows_amx(std::int64_t rows, std::int64_t columns, const Strip& strip, std::int64_t depth,
                  const TileOutput& out);
void fma_bf16x12_amx(std::int64_t rows, std::int64_t columns, const FewRows& a, const Bf16x12Part& w,
                     const TileOutput& out);
void widen_bf16x12_block(std::int64_t depth, const std::byte* block, std::uint16_t* out);
void widen_bf16x12_avx512bf16(std::int64_t columns, std::int64_t k, std::int64_t begin, std::int64_t depth,
                              const std::byte* w, std::uint16_t* out);

}  // namespace mw::engine
