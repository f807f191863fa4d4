// SPDX-License-Identifier: Apache-2.0
// One tensor of a model as the engine stores it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/engine/kernels/bf16x12.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/vector.h"

namespace mw::engine {

struct Weight {
  std::int64_t rows = 0, cols = 0;
  bool vector = false;            // norms and scalars: few numbers, always f32
  WeightRef at;                   // what kernels read; norms: f32 (with bf16 values if the weights are bf16)
  float* f32 = nullptr;           // writable; the f32 master copy if there is one, null for others but row-major f32
  float* packed_f32 = nullptr;    // writable
  float* norm = nullptr;          // norms: at.f32, writable
  std::uint16_t* bf16 = nullptr;  // writable; row-major or packed, as `at` says
  std::int8_t* int8 = nullptr;    // writable, with its scales
  std::uint16_t* scales = nullptr;
  std::byte* bf16x12 = nullptr;  // writable in whole panels
  OverflowTable* overflow = nullptr;
  float* gradient = nullptr;  // full training only
  float offset = 0;           // norms: added to the values
  NormGain gain() const { return {at.f32, offset}; }
  std::int64_t elements() const { return rows * cols; }
};

// Writes rows [first, first + values.size() / cols) of a matrix in the format in which it is stored; those of bf16x12
// and packed_f32 take whole panels. `bits`: bf16. Not for norms. Threads may write rows of different panels
// concurrently.
void write_rows(const VectorKernels& kernels, const Weight& w, std::int64_t first, std::span<const std::uint16_t> bits);
void write_rows(const VectorKernels& kernels, const Weight& w, std::int64_t first, std::span<const float> values);
// Reads what the kernels read (not the f32 master copy) as f32.
void read_rows(const Weight& w, std::int64_t first, std::span<float> values);

}  // namespace mw::engine
