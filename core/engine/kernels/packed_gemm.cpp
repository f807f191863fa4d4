// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/engine/kernels/packed_blocks.h"

namespace mw::engine {
namespace {

using Kind = PackedProduct::Kind;

constexpr std::int64_t kDepth = 1024;
constexpr std::int64_t kInt8Rows = 24;             // from here on widening the bytes to bf16 once is cheaper
constexpr std::int64_t kWideRows = 32;             // from here on laying out the activations pays
constexpr std::int64_t kSharedElements = 4 << 20;  // of a weight: all threads may read it, it stays in L3

}  // namespace

PackedGemm::Workspace PackedGemm::workspace(std::int64_t thread) {
  std::uint16_t* at = workspace_.data() + thread * kWorkspace;
  return {at, at + kActivations, at + kActivations + kPanels, at + kActivations + kPanels + kLowRows};
}

void PackedGemm::pack(const PackedProduct::Matrix& b, std::int64_t k_total, std::int64_t n_total, Range depth,
                      Range columns, std::uint16_t* out) {
  switch (b.kind) {
    case Kind::panels:
      break;
    case Kind::turned:
      kernels_.turn(n_total, depth.begin, depth.size(), columns.begin, columns.size(), b.packed, out);
      break;
    case Kind::int8:
      kernels_.widen_int8(columns.size(), k_total, depth.begin, depth.size(), int8_from(b.int8, k_total, columns.begin),
                          out);
      break;
    case Kind::slim:
      kernels_.widen_slim(columns.size(), k_total, depth.begin, depth.size(),
                          b.slim + sizes::slim_bytes(columns.begin, k_total), out);
      break;
    case Kind::rows:
      kernels_.pack_rows(columns.size(), depth.size(), b.f32 + columns.begin * k_total + depth.begin, k_total, out);
      break;
    case Kind::columns:
      kernels_.pack_columns(depth.size(), columns.size(), b.f32 + depth.begin * n_total + columns.begin, n_total, out);
      break;
  }
}

void PackedGemm::run_part(const PackedProduct& p, Range rows, Range columns, const Workspace& w) {
  const bool packs = p.b.kind != Kind::panels;
  const std::int64_t deepest = packs ? kPackedDepth : kDepth, low_stride = even(p.low.rank);
  const std::int64_t blocks = (rows.size() + kRows - 1) / kRows;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const Range some{rows.begin + edge(rows.size(), 1, i, blocks), rows.begin + edge(rows.size(), 1, i + 1, blocks)};
    if (p.low.z)
      kernels_.narrow_rows(some.size(), p.low.rank, p.low.scale, p.low.z + some.begin * p.low.rank, p.low.rank, w.z,
                           low_stride);
    for (std::int64_t d = 0; d < p.k; d += deepest) {
      const Range depth{d, std::min(p.k, d + deepest)};
      const std::int64_t stride = even(depth.size());
      Strip strips[2] = {{w.a, stride, nullptr, 0, stride / 2},
                         {w.z, low_stride, w.low, low_stride * kPanelRows, low_stride / 2}};
      kernels_.narrow_rows(some.size(), depth.size(), p.scale, p.a + some.begin * p.k + d, p.k, w.a, stride);
      const bool with_low = p.low.z && depth.end == p.k;
      const std::int64_t widest = packs || with_low ? kColumns : columns.size();
      for (std::int64_t j = columns.begin; j < columns.end; j += widest) {
        const Range part{j, std::min(columns.end, j + widest)};
        if (packs) {
          pack(p.b, p.k, p.n, depth, part, w.b);
          strips[0].b = w.b, strips[0].b_stride = stride * kPanelRows;
        } else {
          strips[0].b = p.b.packed + packed_index(p.k, j, d), strips[0].b_stride = p.k * kPanelRows;
        }
        if (with_low) pack(p.low.b, p.low.rank, p.n, {0, p.low.rank}, part, w.low);
        kernels_.block(some.size(), part.size(), strips, with_low ? 2 : 1, p.c + some.begin * p.n + j, p.n,
                       d > 0 ? Store::accumulate : p.store);
      }
    }
  }
}

// A few rows straight from the bytes; activations and their scales take the places of bf16 rows and panels.
void PackedGemm::int8_part(const PackedProduct& p, Range columns, const Workspace& w) {
  auto* rows = reinterpret_cast<std::int16_t*>(w.a);
  auto* scales = reinterpret_cast<float*>(w.b);
  kernels_.quantise_rows(p.m, p.k, p.a, rows, scales);
  for (std::int64_t i = 0; i < p.m * groups_of(p.k); ++i) scales[i] *= p.scale;
  kernels_.int8_rows(p.m, columns.size(), p.k, rows, scales, int8_from(p.b.int8, p.k, columns.begin),
                     p.c + columns.begin, p.n, p.store);
}

// Columns of C [m, n] from rounded activations in w.a.
void PackedGemm::few_columns(std::int64_t m, std::int64_t k, const PackedProduct::Matrix& b, Range columns,
                             const Workspace& w, float* c, std::int64_t n, Store store) {
  if (b.kind == Kind::slim)
    kernels_.few_slim(m, columns.size(), k, w.a, b.slim + sizes::slim_bytes(columns.begin, k), c + columns.begin, n,
                      store);
  else
    kernels_.few_rows(m, columns.size(), k, w.a, b.packed + columns.begin * k, c + columns.begin, n, store);
}

void PackedGemm::few_part(const PackedProduct& p, Range columns, const Workspace& w) {
  kernels_.narrow_rows(p.m, p.k, p.scale, p.a, p.k, w.a, p.k);
  few_columns(p.m, p.k, p.b, columns, w, p.c, p.n, p.store);
}

void PackedGemm::prepare() {
  if (workspace_) return;
  workspace_ = Buffer<std::uint16_t>(device_.arena, MemoryCategory::workspace,
                                     static_cast<size_t>(device_.pool.threads() * kWorkspace), "bf16 blocks");
}

void PackedGemm::block(std::int64_t thread, Operand a_op, Operand b_op, std::int64_t m, std::int64_t n, std::int64_t k,
                       float scale, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, Store store,
                       float* c, std::int64_t ldc) {
  const Workspace w = workspace(thread);
  for (std::int64_t d = 0; d < k; d += kPackedDepth) {
    const std::int64_t depth = std::min(kPackedDepth, k - d), stride = even(depth);
    for (std::int64_t i = 0; i < m; i += kRows) {
      const std::int64_t rows = std::min(kRows, m - i);
      if (a_op == Operand::plain)
        kernels_.narrow_rows(rows, depth, scale, a + i * lda + d, lda, w.a, stride);
      else
        kernels_.narrow_columns(depth, rows, scale, a + d * lda + i, lda, w.a, stride);
      for (std::int64_t j = 0; j < n; j += kColumns) {
        const std::int64_t columns = std::min(kColumns, n - j);
        if (b_op == Operand::transposed)
          kernels_.pack_rows(columns, depth, b + j * ldb + d, ldb, w.b);
        else
          kernels_.pack_columns(depth, columns, b + d * ldb + j, ldb, w.b);
        const Strip strip{w.a, stride, w.b, stride * kPanelRows, stride / 2};
        kernels_.block(rows, columns, &strip, 1, c + i * ldc + j, ldc, d > 0 ? Store::accumulate : store);
      }
    }
  }
}

void PackedGemm::run(const PackedProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  const int threads =
      2.0 * static_cast<double>(p.m * p.n) * static_cast<double>(p.k) < kInlineFlops ? 1 : device_.pool.threads();
  prepare();
  const bool by_rows = p.m >= p.n || (p.m >= 2 * kGroupRows * threads && p.n * p.k <= kSharedElements);
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Range columns{edge(p.n, kPanelRows, t, threads), edge(p.n, kPanelRows, t + 1, threads)};
      const Range rows{edge(p.m, kGroupRows, t, threads), edge(p.m, kGroupRows, t + 1, threads)};
      if (p.b.kind == Kind::int8 && p.m <= kInt8Rows && p.m * p.k <= kActivations)
        int8_part(p, columns, w);
      else if (p.m >= kWideRows)
        by_rows ? run_wide(p, rows, {0, p.n}, w) : run_wide(p, {0, p.m}, columns, w);
      else if ((p.b.kind == Kind::panels || p.b.kind == Kind::slim) && p.m <= kDecodedRows &&
               p.m * p.k <= kActivations && !p.low.z)
        few_part(p, columns, w);
      else
        by_rows ? run_part(p, rows, {0, p.n}, w) : run_part(p, {0, p.m}, columns, w);
    }
  });
}

}  // namespace mw::engine
