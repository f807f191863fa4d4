// SPDX-License-Identifier: Apache-2.0
// Kernels for products of many rows: the left operand is laid out once per use in groups of G rows, in pairs of bf16
//   element (m, k) at (m / G) * G * K + (k / 2) * 2 * G + (m % G) * 2 + k % 2, K even, rows padded to whole groups,
// and in f32 element (m, k) at (m / G) * G * K + k * G + m % G.
// With G = kGroupRows a tile reads it as one stream beside one panel of the right operand (packed.h), over the whole
// depth at once; with G = 1 rows follow each other. Kernels may read 15 rows more than there are, within the workspace.
#pragma once
#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/vector.h"

namespace mw::engine {

inline constexpr std::int64_t kGroupRows = 12;

constexpr std::int64_t group_index(std::int64_t group_rows, std::int64_t k_total, std::int64_t m, std::int64_t k) {
  return m / group_rows * group_rows * k_total + k / 2 * 2 * group_rows + m % group_rows * 2 + k % 2;
}

// Activations: x, or its norm x * inv[row] * gain if there is an inv.
struct Activations {
  const float* x = nullptr;
  std::int64_t stride = 0;     // between rows
  const float* inv = nullptr;  // [rows], null: no norm
  NormGain gain{};
  Activations from(std::int64_t row, std::int64_t column) const {
    return {x + row * stride + column,
            stride,
            inv ? inv + row : nullptr,
            {gain.w ? gain.w + column : nullptr, gain.offset}};
  }
};

// One summand of a product: groups of A against panels of B, `steps` pairs or f32 values deep.
struct GroupedStrip {
  const std::uint16_t* a;
  const std::uint16_t* b;
  std::int64_t b_stride;  // elements between panels
  std::int64_t steps;
};

// Memory that is read next, prefetched into L2 while a block is computed: `left` ranges, one for each tile. A tile
// prefetches one cache line for every four pairs of depth.
struct Prefetch {
  const std::uint16_t* at = nullptr;
  std::int64_t stride = 0, left = 0;
};

struct GemmKernels {
  // G; the unit in which work is split by rows; rows of a tile of logits, at most sizes::kLogitTileRows; from how many
  // rows on these kernels are faster than those of packed.h.
  std::int64_t group_rows = kGroupRows, row_unit = kGroupRows, tile_rows = kGroupRows, least_rows = 32;
  // Deeper products are computed in several passes; a block of panels of most_depth is still 64 columns wide. Products
  // of one input are fused up to most_fused_depth, in one pass.
  std::int64_t most_depth = 4096, most_fused_depth = 8192;
  // Panels that are packed at once, in elements: with the activations they leave room in L2 for those that are read
  // next.
  std::int64_t part_elements = 96 << 10;
  // C[rows, columns) (+)= sum of strips. Every output's terms are added in order of depth, as in packed.h.
  void (*block)(std::int64_t rows, std::int64_t columns, const GroupedStrip* strips, int count, const TileOutput& out,
                Prefetch* ahead);
  // Lays out bf16(scale * x[r, 0..k)) as above; an odd k is padded with a zero.
  void (*groups)(std::int64_t rows, std::int64_t k, const Activations& x, float scale, std::uint16_t* out);
  // Panels of x [depth, columns], depth along its columns, padded to whole panels and pairs.
  void (*panels)(std::int64_t depth, std::int64_t columns, const Activations& x, std::uint16_t* out);
  // From here on of bf16 only. One row of a tile of logits: updates the running maximum and the running sum of exp(x -
  // max), and writes out = f16(exp(x - max)) with the updated maximum. cap > 0: x becomes cap * tanh(x / cap) first,
  // and out is multiplied by the slope of that softcap.
  void (*logit_tile)(std::int64_t n, float cap, float* x, std::uint16_t* out, float* max, float* sum) = nullptr;
  // Lays out bf16(factor[row] * x) as above; x f16 [rows, n], n even.
  void (*scaled_groups)(std::int64_t rows, std::int64_t n, const float* factor, const std::uint16_t* x,
                        std::int64_t stride, std::uint16_t* out) = nullptr;
};

enum class Unit { bf16_pair, f32 };  // what a depth step of panels and of laid-out rows is

// Products with weights of one kind.
struct ProductKernels {
  const char* instructions = nullptr;  // in words
  Unit unit = Unit::bf16_pair;
  PackedKernels packed;
  GemmKernels gemm;
  // Units of 16 bits that a depth of k takes in a panel's column or a row.
  constexpr std::int64_t stored(std::int64_t k) const { return unit == Unit::f32 ? 2 * k : (k + 1) / 2 * 2; }
};

struct CpuKernels {
  ProductKernels bf16, f32;
  const char* int8_instructions = nullptr;  // of up to kMaxInt8Rows rows; more use `bf16`
};

}  // namespace mw::engine
