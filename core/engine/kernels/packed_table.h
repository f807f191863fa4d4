// SPDX-License-Identifier: Apache-2.0
// The packed kernels' only build; packed.cpp decides whether the processor may run them.
#pragma once
#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/slim.h"
#include "core/engine/kernels/wide.h"

namespace mw::engine {

const PackedKernels& packed_kernels_avx512bf16();
const WideKernels& wide_kernels_avx512bf16();

// Their parts in files of their own.
void few_rows_avx512bf16(std::int64_t rows, std::int64_t columns, std::int64_t k, const std::uint16_t* a,
                         const std::uint16_t* w, float* c, std::int64_t ldc, Store store);
void quantise_rows_avx512bf16(std::int64_t rows, std::int64_t k, const float* x, std::int16_t* out, float* scales);
void int8_rows_avx512bf16(std::int64_t rows, std::int64_t columns, std::int64_t k, const std::int16_t* a,
                          const float* a_scales, Int8Weight w, float* c, std::int64_t ldc, Store store);
void widen_int8_avx512bf16(std::int64_t columns, std::int64_t k, std::int64_t begin, std::int64_t depth, Int8Weight w,
                           std::uint16_t* out);
void few_slim_avx512bf16(std::int64_t rows, std::int64_t columns, std::int64_t k, const std::uint16_t* a,
                         const std::byte* w, float* c, std::int64_t ldc, Store store);
void widen_slim_block(std::int64_t depth, const std::byte* block, std::uint16_t* out);
void widen_slim_avx512bf16(std::int64_t columns, std::int64_t k, std::int64_t begin, std::int64_t depth,
                           const std::byte* w, std::uint16_t* out);

}  // namespace mw::engine
