// SPDX-License-Identifier: Apache-2.0
// Matrix products on panels of bf16 pairs or of f32. Pairs: vdpbf16ps with AVX-512 BF16, elsewhere two FMAs on values
// expanded in registers (packed_bodies.h). A weight W [N,K] is stored in panels of 32 rows, so that one layout serves
// prefill, decode and, repacked block by block, the backward. Of bf16,
//   element (n, k) at (n / 32) * 32 * K + (k / 2) * 64 + (n % 32) * 2 + k % 2,
// and of f32, whose values take the places of pairs,
//   element (n, k) at (n / 32) * 32 * K + k * 32 + n % 32.
// A slice of whole panels is contiguous: rows [32 i, 32 j) start at 32 i * K, as in a row-major matrix.
// Memory of either kind is counted in units of 16 bits: bf16 values, or halves of f32.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/buffer_sizes.h"
#include "core/engine/kernels/matrix.h"

namespace mw::engine {

using sizes::kBf16x12Depth;
using sizes::kPanelRows;
using sizes::packable;  // weights of other shapes stay row-major

constexpr std::int64_t packed_index(std::int64_t k_total, std::int64_t n, std::int64_t k) {
  return n / kPanelRows * kPanelRows * k_total + k / 2 * 2 * kPanelRows + n % kPanelRows * 2 + k % 2;
}

constexpr std::int64_t packed_f32_index(std::int64_t k_total, std::int64_t n, std::int64_t k) {
  return n / kPanelRows * kPanelRows * k_total + k * kPanelRows + n % kPanelRows;
}

// One summand of a product: rows of A against panels of B, `steps` pairs or f32 values deep.
struct Strip {
  const std::uint16_t* a;
  std::int64_t a_stride;  // elements between rows, even
  const std::uint16_t* b;
  std::int64_t b_stride;  // elements between panels
  std::int64_t steps;
};

inline constexpr std::int64_t kMaxSkinnyRows = 16;  // rows of the kernels for decoding
inline constexpr std::int64_t kMaxInt8Rows = 24;    // for more rows, widening the weights to bf16 once is faster

struct TileOutput {  // columns of C
  float* c = nullptr;
  std::int64_t stride = 0;  // floats between rows
  StoreMode store = StoreMode::write;
};

struct LaidOutRows {
  std::uint16_t* data = nullptr;
  std::int64_t stride = 0;  // between rows, even
};

struct PanelBlock {  // columns [first_column, first_column + columns) of depth [begin, begin + depth)
  std::int64_t begin = 0, depth = 0, first_column = 0, columns = 0;
};

// int8 weights, for inference: the panels above with one byte an element, and a bf16 scale for each row's groups of
// kGroup along K, [panel][group][32]. Activations are rounded to 16-bit integers per row and group, which is more
// precise than bf16.
inline constexpr std::int64_t kGroup = sizes::kScaleGroup;
constexpr std::int64_t groups_of(std::int64_t k) {
  return sizes::scale_groups(k);
}
constexpr std::int64_t scale_index(std::int64_t k_total, std::int64_t n, std::int64_t k) {
  return (n / kPanelRows * groups_of(k_total) + k / kGroup) * kPanelRows + n % kPanelRows;
}
struct Bf16x12Part {  // depth [begin, begin + depth) of a W [N, k] in 12 bits; `at` starts a panel, begin a block
  const std::byte* at = nullptr;
  std::int64_t k = 0, begin = 0, depth = 0;
};

inline constexpr std::int64_t kFewRows = 4, kFewRowsDepth = 32;
struct FewRows {
  const std::uint16_t* at = nullptr;  // bf16 [rows, depth], rows <= kFewRows
  float* widened = nullptr;           // memory for as many floats
};

struct Int8Weight {
  const std::int8_t* at = nullptr;
  const std::uint16_t* scales = nullptr;
};

// Kernels of bf16 lay out pairs and round to bf16, as the comments say; those of f32 (packed_f32.h) lay out f32 as it
// is.
struct PackedKernels {
  // C[rows, columns) (+)= sum of strips. Every output's terms are added in order of depth, whatever the shape.
  void (*block)(std::int64_t rows, std::int64_t columns, const Strip* strips, int count, const TileOutput& out);
  // C = A W^T for a packed W [n, k] that starts at a panel, m <= kMaxSkinnyRows and even k: weights are read once, in
  // order. a: rows as lay_out_rows() writes them, k apart.
  void (*skinny_rows)(const GemmShape& shape, const std::uint16_t* a, const std::uint16_t* w, const TileOutput& out);
  // out[r, 0..k) = bf16(scale * x[r, 0..k)); an odd k is padded with a zero.
  void (*lay_out_rows)(std::int64_t rows, std::int64_t k, float scale, MatrixView x, LaidOutRows out);
  // out[c, r] = bf16(scale * x[r, c]): rows become columns. An odd `rows` is padded with a zero.
  void (*lay_out_columns)(std::int64_t rows, std::int64_t columns, float scale, MatrixView x, LaidOutRows out);
  // Panels of the f32 matrix B [columns, k], depth along its rows, padded to whole panels and pairs.
  void (*pack_rows)(std::int64_t columns, std::int64_t k, const float* b, std::int64_t b_stride, std::uint16_t* out);
  // Panels of the f32 matrix B [depth, columns], depth along its columns.
  void (*pack_columns)(std::int64_t depth, std::int64_t columns, const float* b, std::int64_t b_stride,
                       std::uint16_t* out);
  // Panels of a block of a packed W [N, k_total] read as [depth N, columns K]. begin and depth are multiples of 16,
  // first_column of 32.
  void (*transpose_panels)(const std::uint16_t* w, std::int64_t k_total, const PanelBlock& block, std::uint16_t* out);
  // From here on of bf16 only.
  // skinny_rows() for 12 bits an element (bf16x12.h), bit for bit.
  void (*skinny_bf16x12)(const GemmShape& shape, const std::uint16_t* a, const std::byte* w,
                         const TileOutput& out) = nullptr;
  // out = x / scale as 16-bit integers; scales [rows, groups].
  void (*quantise_rows)(std::int64_t rows, std::int64_t k, const float* x, std::int16_t* out, float* scales) = nullptr;
  // C[m, n) = A W^T from quantised rows, for a W [n, k] that starts at a panel.
  void (*int8_rows)(const GemmShape& shape, const std::int16_t* a, const float* a_scales, Int8Weight w,
                    const TileOutput& out) = nullptr;
  // bf16 panels of columns [0, columns) and depth [begin, begin + depth) of W [N,k]; begin a multiple of kGroup.
  void (*widen_int8)(std::int64_t columns, std::int64_t k, std::int64_t begin, std::int64_t depth, Int8Weight w,
                     std::uint16_t* out) = nullptr;
  // widen_int8() for 12 bits an element. begin is a multiple of sizes::kBf16x12Depth, as is depth unless it ends at k.
  void (*widen_bf16x12)(std::int64_t columns, std::int64_t k, std::int64_t begin, std::int64_t depth,
                        const std::byte* w, std::uint16_t* out) = nullptr;
  // C[rows, columns) (+)= A W^T with the bits of `block` for the widened weight; the depth is a multiple of
  // kFewRowsDepth. Null: skinny_bf16x12 has these bits.
  void (*fma_bf16x12)(std::int64_t rows, std::int64_t columns, const FewRows& a, const Bf16x12Part& w,
                      const TileOutput& out) = nullptr;
};

}  // namespace mw::engine
