// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/packed_gemm.h"

#include <algorithm>

namespace mw::engine {
namespace {

using Kind = PackedProduct::Kind;

constexpr std::int64_t kRows = sizes::kBlockRows, kDepth = sizes::kBlockDepth, kPackedDepth = sizes::kPanelDepth,
                       kColumns = sizes::kPanelColumns, kTileRows = sizes::kLogitTileRows;
constexpr std::int64_t kInt8Rows = 24;  // from here on widening the bytes to bf16 once is cheaper
constexpr std::int64_t kActivations = kRows * kDepth, kPanels = kColumns * kPackedDepth,
                       kLowRows = kRows * kMostFusedRank, kLowPanels = kColumns * kMostFusedRank;
constexpr std::int64_t kWorkspace = sizes::kPackedBlocks;
static_assert(kActivations + kPanels + kLowRows + kLowPanels == kWorkspace);
constexpr double kInlineFlops = 200e3;  // waking a worker costs about as much

std::int64_t even(std::int64_t n) {
  return (n + 1) / 2 * 2;
}

// The i-th of `count` nearly equal parts of [0, total), in whole `unit`s.
std::int64_t edge(std::int64_t total, std::int64_t unit, std::int64_t i, std::int64_t count) {
  return std::min(total, (total + unit - 1) / unit * i / count * unit);
}

Int8Weight int8_from(Int8Weight w, std::int64_t k, std::int64_t row) {
  return {w.at + row * k, w.scales + scale_index(k, row, 0)};
}

}  // namespace

PackedGemm::Workspace PackedGemm::workspace(std::int64_t thread) {
  std::uint16_t* at = workspace_.data() + thread * kWorkspace;
  return {at, at + kActivations, at + kActivations + kPanels, at + kActivations + kPanels + kLowRows};
}

// Panels of `columns`, `depth` of a matrix that is not stored as such.
void PackedGemm::pack(const PackedProduct::Matrix& b, const PackedProduct& p, Range depth, Range columns,
                      std::uint16_t* out) {
  const std::int64_t total = &b == &p.b ? p.k : p.low.rank;
  switch (b.kind) {
    case Kind::panels:
      break;
    case Kind::turned:
      kernels_.turn(p.n, depth.begin, depth.size(), columns.begin, columns.size(), b.packed, out);
      break;
    case Kind::int8:
      kernels_.widen_int8(columns.size(), p.k, depth.begin, depth.size(), int8_from(b.int8, p.k, columns.begin), out);
      break;
    case Kind::rows:
      kernels_.pack_rows(columns.size(), depth.size(), b.f32 + columns.begin * total + depth.begin, total, out);
      break;
    case Kind::columns:
      kernels_.pack_columns(depth.size(), columns.size(), b.f32 + depth.begin * p.n + columns.begin, p.n, out);
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
      if (p.half)
        strips[0].a = p.half + some.begin * p.k + d, strips[0].a_stride = p.k;
      else
        kernels_.narrow_rows(some.size(), depth.size(), p.scale, p.a + some.begin * p.k + d, p.k, w.a, stride);
      const bool with_low = p.low.z && depth.end == p.k;
      const std::int64_t widest = packs || with_low ? kColumns : columns.size();
      for (std::int64_t j = columns.begin; j < columns.end; j += widest) {
        const Range part{j, std::min(columns.end, j + widest)};
        if (packs) {
          pack(p.b, p, depth, part, w.b);
          strips[0].b = w.b, strips[0].b_stride = stride * kPanelRows;
        } else {
          strips[0].b = p.b.packed + packed_index(p.k, j, d), strips[0].b_stride = p.k * kPanelRows;
        }
        if (with_low) pack(p.low.b, p, {0, p.low.rank}, part, w.low);
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

void PackedGemm::few_part(const PackedProduct& p, Range columns, const Workspace& w) {
  kernels_.narrow_rows(p.m, p.k, p.scale, p.a, p.k, w.a, p.k);
  kernels_.few_rows(p.m, columns.size(), p.k, w.a, p.b.packed + columns.begin * p.k, p.c + columns.begin, p.n, p.store);
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
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Range columns{edge(p.n, kPanelRows, t, threads), edge(p.n, kPanelRows, t + 1, threads)};
      if (p.b.kind == Kind::int8 && p.m <= kInt8Rows && p.m * p.k <= kActivations)
        int8_part(p, columns, w);
      else if (p.b.kind == Kind::panels && p.m <= kDecodedRows && p.m * p.k <= kActivations && !p.low.z)
        few_part(p, columns, w);
      else if (p.m >= p.n)
        run_part(p, {edge(p.m, 12, t, threads), edge(p.m, 12, t + 1, threads)}, {0, p.n}, w);
      else
        run_part(p, {0, p.m}, columns, w);
    }
  });
}

void PackedGemm::stream(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const std::uint16_t* b,
                        const std::function<void(const Tile&)>& take) {
  const int threads = device_.pool.threads();
  prepare();
  if (!tiles_)
    tiles_ = Buffer<float>(device_.arena, MemoryCategory::workspace, static_cast<size_t>(threads * sizes::kLogitTile),
                           "tiles of logits");
  const std::int64_t most = std::min(kTileRows, kActivations / k);
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      float* tile = tiles_.data() + t * sizes::kLogitTile;
      const Range columns{edge(n, kPanelRows, t, threads), edge(n, kPanelRows, t + 1, threads)};
      for (std::int64_t row = 0; row < m; row += most) {
        const std::int64_t rows = std::min(most, m - row);
        kernels_.narrow_rows(rows, k, 1.0f, a + row * k, k, w.a, k);
        for (std::int64_t j = columns.begin; j < columns.end; j += kColumns) {
          const std::int64_t some = std::min(kColumns, columns.end - j);
          const Strip strip{w.a, k, b + packed_index(k, j, 0), k * kPanelRows, k / 2};
          kernels_.block(rows, some, &strip, 1, tile, kColumns, Store::write);
          take({static_cast<int>(t), row, rows, j, some, tile, kColumns});
        }
      }
    }
  });
}

}  // namespace mw::engine
