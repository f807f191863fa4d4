// SPDX-License-Identifier: Apache-2.0
// Kernels for processors with AMX: products of many rows through oneDNN (onednn_gemm.h), everything else as with
// AVX-512 BF16, with which this file is built.
#if defined(__AVX512BF16__)
#include <immintrin.h>

#include <cstddef>
#include <iterator>

#include "core/engine/kernels/activation_avx512.h"
#include "core/engine/kernels/onednn_gemm.h"
#include "core/engine/kernels/packed_avx512bf16.h"
#include "core/engine/kernels/packed_vectors.h"

namespace mw::engine {
namespace {

// `rows` rows of a tile of sums replace columns of C or are added to them. `stride`: of the tile.
void store_tile(i64 rows, i64 columns, const float* tile, i64 stride, const TileOutput& out) {
  for (i64 column = 0; column < columns; column += kPanelRows) {
    const ColumnMasks mask = masks(columns - column);
    for (i64 r = 0; r < rows; ++r)
      for (int v = 0; v < 2; ++v) {
        float* const c = out.c + r * out.stride + column + 16 * v;
        __m512 sum = _mm512_load_ps(tile + r * stride + column + 16 * v);
        if (out.store == StoreMode::accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask.of[v], c));
        _mm512_mask_storeu_ps(c, mask.of[v], sum);
      }
  }
}

// A part of a strip that one call of oneDNN is deep, whose rows of A follow each other. The last rows are padded to 16
// with what follows them in memory.
void deep_product(i64 rows, i64 columns, const Strip& strip, i64 depth, const TileOutput& out) {
  if (rows <= kFewRows) return fma_rows_amx(rows, columns, strip, depth, out);
  alignas(64) float tile[kAmxRows[0] * kAmxPanels[0] * kPanelRows];
  alignas(64) std::byte scratch[kOnednnScratchBytes];
  const i64 panel_elements = depth * kPanelRows, panels = (columns + kPanelRows - 1) / kPanelRows;
  for (i64 panel = 0; panel < panels;) {
    const int wide = strip.b_stride == panel_elements && panels - panel >= kAmxPanels[0] ? 0 : 1;
    const i64 width = kAmxPanels[wide] * kPanelRows, column = panel * kPanelRows;
    PanelProduct* products[std::size(kAmxRows)] = {};
    for (i64 row = 0; row < rows;) {
      int i = 0;
      while (i + 1 < static_cast<int>(std::size(kAmxRows)) && kAmxRows[i] > rows - row) ++i;
      if (!products[i]) products[i] = &panel_product({i, wide, depth});
      run(*products[i], {strip.a + row * depth, strip.b + panel * strip.b_stride, tile, scratch});
      const i64 height = rows - row < kAmxRows[i] ? rows - row : kAmxRows[i];
      store_tile(height, columns - column < width ? columns - column : width, tile, width,
                 {out.c + row * out.stride + column, out.stride, out.store});
      row += height;
    }
    panel += kAmxPanels[wide];
  }
}

// Computes deep_product() for rows of A with gaps between them: copies blocks of rows without the gaps.
void gapped_product(i64 rows, i64 columns, const Strip& strip, i64 depth, const TileOutput& out) {
  alignas(64) std::uint16_t a[kAmxRows[0] * kAmxCopiedDepth];
  for (i64 row = 0; row < rows; row += kAmxRows[0]) {
    const i64 some = rows - row < kAmxRows[0] ? rows - row : kAmxRows[0];
    for (i64 r = 0; r < some; ++r)
      memcpy(a + r * depth, strip.a + (row + r) * strip.a_stride, static_cast<size_t>(depth) * 2);
    deep_product(some, columns, {a, depth, strip.b, strip.b_stride, depth / 2}, depth,
                 {out.c + row * out.stride, out.stride, out.store});
  }
}

// oneDNN and fma_rows_amx() multiply what is deep enough, vdpbf16ps the rest.
void block(i64 rows, i64 columns, const Strip* strips, int count, const TileOutput& out) {
  if (rows == 0) return;
  TileOutput to = out;
  for (int s = 0; s < count; ++s) {
    Strip strip = strips[s];
    while (strip.steps > 0) {
      const i64 left = 2 * strip.steps;
      const i64 most = strip.a_stride != left ? kAmxCopiedDepth : amx_slice(left),
                deep = left < most ? left / kAmxDepth * kAmxDepth : most;
      const bool gaps = strip.a_stride != deep;
      if (deep == 0) {
        kernels_avx512_bf16().bf16.packed.block(rows, columns, &strip, 1, to);
        strip.steps = 0;
      } else {
        gaps ? gapped_product(rows, columns, strip, deep, to) : deep_product(rows, columns, strip, deep, to);
        strip.a += deep, strip.b += deep * kPanelRows, strip.steps -= deep / 2;
      }
      to.store = StoreMode::accumulate;
    }
  }
}

// Rows one after another: groups of one row.
void grouped_block(i64 rows, i64 columns, const GroupedStrip* strips, int count, const TileOutput& out, Prefetch*) {
  Strip plain[2];
  for (int s = 0; s < count; ++s)
    plain[s] = {strips[s].a, 2 * strips[s].steps, strips[s].b, strips[s].b_stride, strips[s].steps};
  block(rows, columns, plain, count, out);
}

void rows_of(i64 rows, i64 k, const Activations& x, float scale, std::uint16_t* out) {
  const i64 deep = (k + 1) / 2 * 2;
  const __m512 by = _mm512_set1_ps(scale);
  for (i64 row = 0; row < rows; ++row, out += deep) {
    const float* const at = x.x + row * x.stride;
    const float inv = x.inv ? x.inv[row] : 1.0f;
    for (i64 i = 0; i < deep; i += 16) {
      const __m512 v = _mm512_mul_ps(activation(x, at, i, inv, masks(k - i).of[0]), by);
      _mm256_mask_storeu_epi16(out + i, masks(deep - i).of[0], narrow16(v));
    }
  }
}

void scaled_rows(i64 rows, i64 n, const float* factor, const std::uint16_t* x, i64 stride, std::uint16_t* out) {
  for (i64 row = 0; row < rows; ++row, out += n) {
    const __m512 by = _mm512_set1_ps(factor[row]);
    for (i64 i = 0; i < n; i += 16) {
      const __mmask16 some = masks(n - i).of[0];
      const __m512 v = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, x + row * stride + i));
      _mm256_mask_storeu_epi16(out + i, some, narrow16(_mm512_mul_ps(v, by)));
    }
  }
}

}  // namespace

const CpuKernels& kernels_amx() {
  static const CpuKernels kernels = [] {
    CpuKernels k = kernels_avx512_bf16();
    k.bf16.instructions = "AMX through oneDNN, FMAs for up to four rows";
    k.bf16.packed.block = block;
    k.bf16.packed.fma_bf16x12 = fma_bf16x12_amx;
    k.bf16.gemm.group_rows = 1;
    k.bf16.gemm.row_unit = 32;
    k.bf16.gemm.tile_rows = 64;
    k.bf16.gemm.least_rows = 1;
    k.bf16.gemm.part_elements = 256 << 10;  // four panels of kAmxMostDepth
    // Deeper rows of A have gaps and are copied for each block of columns.
    k.bf16.gemm.most_depth = k.bf16.gemm.most_fused_depth = kAmxMostDepth;
    k.bf16.gemm.block = grouped_block;
    k.bf16.gemm.groups = rows_of;
    k.bf16.gemm.scaled_groups = scaled_rows;
    return k;
  }();
  return kernels;
}

}  // namespace mw::engine
#endif
