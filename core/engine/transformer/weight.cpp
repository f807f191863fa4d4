// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/weight.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/engine/kernels/kernel_choice.h"

namespace mw::engine {
namespace {

constexpr float kLargestInt8 = 127;

// A bf16 scale at least as large as needed, so that rounding it never overflows the bytes.
std::uint16_t scale_bits(const VectorKernels& kernels, float largest) {
  std::uint16_t bits;
  const float scale = largest / kLargestInt8;
  kernels.narrow(1, &scale, &bits);
  float rounded;
  kernels.widen(1, &bits, &rounded);
  return rounded < scale ? static_cast<std::uint16_t>(bits + 1) : bits;
}

void quantise_row(const VectorKernels& kernels, const Weight& w, std::int64_t row, const float* values) {
  for (std::int64_t first = 0; first < w.cols; first += kGroup) {
    const std::int64_t end = std::min(w.cols, first + kGroup);
    float largest = 0;
    for (std::int64_t i = first; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    std::uint16_t& bits = w.scales[scale_index(w.cols, row, first)];
    bits = scale_bits(kernels, largest);
    float scale;
    kernels.widen(1, &bits, &scale);
    const float by = scale > 0 ? 1 / scale : 0;
    for (std::int64_t i = first; i < end; ++i)
      w.int8[packed_index(w.cols, row, i)] = static_cast<std::int8_t>(std::nearbyint(values[i] * by));
  }
}

void write_row(const Weight& w, std::int64_t row, const std::uint16_t* bits) {
  if (w.at.packed)
    for (std::int64_t i = 0; i < w.cols; ++i) w.bf16[packed_index(w.cols, row, i)] = bits[i];
  else
    std::copy_n(bits, w.cols, w.bf16 + row * w.cols);
}

}  // namespace

void write_rows(const VectorKernels& kernels, const Weight& w, std::int64_t first,
                std::span<const std::uint16_t> bits) {
  const auto rows = static_cast<std::int64_t>(bits.size()) / w.cols;
  if (w.bf16x12) {
    for (std::int64_t r = 0; r < rows; r += kPanelRows)
      write_bf16x12_panel(w.cols, bits.data() + r * w.cols, w.bf16x12 + sizes::bf16x12_bytes(first + r, w.cols),
                          *w.overflow);
    return;
  }
  if (w.packed_f32) {
    std::vector<float> wide(bits.size());
    kernels.widen(static_cast<std::int64_t>(bits.size()), bits.data(), wide.data());
    return write_rows(kernels, w, first, std::span<const float>(wide));
  }
  std::vector<float> wide(w.int8 ? static_cast<size_t>(w.cols) : 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint16_t* row = bits.data() + r * w.cols;
    if (w.int8) {
      kernels.widen(w.cols, row, wide.data());
      quantise_row(kernels, w, first + r, wide.data());
    } else if (w.bf16) {
      write_row(w, first + r, row);
    } else {
      kernels.widen(w.cols, row, w.f32 + (first + r) * w.cols);
    }
  }
}

void write_rows(const VectorKernels& kernels, const Weight& w, std::int64_t first, std::span<const float> values) {
  if (w.bf16x12) {
    std::vector<std::uint16_t> all(values.size());
    kernels.narrow(static_cast<std::int64_t>(values.size()), values.data(), all.data());
    return write_rows(kernels, w, first, std::span<const std::uint16_t>(all));
  }
  if (w.packed_f32)
    return cpu_kernels(best_arithmetic(model::WeightType::f32))
        .f32.packed.pack_rows(static_cast<std::int64_t>(values.size()) / w.cols, w.cols, values.data(), w.cols,
                              reinterpret_cast<std::uint16_t*>(w.packed_f32 + first * w.cols));
  std::vector<std::uint16_t> bits(w.bf16 ? static_cast<size_t>(w.cols) : 0);
  const auto rows = static_cast<std::int64_t>(values.size()) / w.cols;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = values.data() + r * w.cols;
    if (w.int8) {
      quantise_row(kernels, w, first + r, row);
    } else if (w.bf16) {
      kernels.narrow(w.cols, row, bits.data());
      write_row(w, first + r, bits.data());
    } else {
      std::copy_n(row, w.cols, w.f32 + (first + r) * w.cols);
    }
  }
}

void read_rows(const Weight& w, std::int64_t first, std::span<float> values) {
  const auto rows = static_cast<std::int64_t>(values.size()) / w.cols;
  for (std::int64_t r = 0; r < rows; ++r) widen_row(w.at, w.cols, first + r, 0, w.cols, values.data() + r * w.cols);
}

}  // namespace mw::engine
