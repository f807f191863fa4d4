// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/packed_gemm.h"

#include <algorithm>
#include <latch>

#include "core/engine/layout/workspace.h"
#include "core/engine/runtime/work_split.h"

namespace mw::engine {
namespace {

using Kind = PackedProduct::Kind;

// A thread's blocks of rounded activations and packed panels stay near its L2 cache, one panel of a block of depth in
// its L1 cache.
constexpr std::int64_t kRows = sizes::kBlockRows, kPackedDepth = sizes::kPanelDepth, kColumns = sizes::kPanelColumns;
constexpr std::int64_t kActivations = kRows * sizes::kBlockDepth, kPanels = kColumns * kPackedDepth,
                       kLowRows = kRows * sizes::kMostFusedRank, kLowPanels = kColumns * sizes::kMostFusedRank;
constexpr std::int64_t kWorkspace = sizes::kPackedBlocks;
// Blocks of attention need part of the activations; kept panels take the rest.
constexpr std::int64_t kBlockActivations = kRows * kPackedDepth, kKeptPanels = kActivations - kBlockActivations;
static_assert(kActivations + kPanels + kLowRows + kLowPanels == kWorkspace);

constexpr double kInlineFlops = 200e3;  // waking a worker costs about as much

// The weight's rows from `row` on; `row` is the first of a panel.
Int8Weight int8_from(Int8Weight w, std::int64_t k, std::int64_t row) {
  return {w.at + row * k, w.scales + scale_index(k, row, 0)};
}

constexpr std::int64_t kDepth = 1024;
static_assert(kDepth % sizes::kF32Run == 0 && kPackedDepth % (2 * sizes::kF32Run) == 0);
constexpr std::int64_t kSharedElements = 4 << 20;  // a weight of this size stays in L3 while all threads read it

// Threads split the rows of a LoRA factor in these units: dot_rows() computes rows of up to kShortRow elements sixteen
// at a time, with another order of additions.
constexpr std::int64_t kShortRow = 64, kShortRows = 16, kFactorRows = 4;

constexpr std::int64_t kSumRank = 64;
static_assert(kSumRank * kColumns * 2 <= kLowRows, "sums of a block of columns take the place of z");

constexpr std::int64_t kLine = 32;               // elements of a cache line
constexpr std::int64_t kFewestColumns = 64;      // that are packed at once
constexpr std::int64_t kGatedColumns = 64;       // of both branches of a gated product: they stay in L2
constexpr std::int64_t kTransposedColumns = 64;  // columns of a transposed panel: it fits L2 with the activations

}  // namespace

struct PackedGemm::LeftOperand {
  Activations x;
  std::int64_t k = 0;
  float scale = 1;
};

std::int64_t PackedGemm::groups_size(std::int64_t rows, std::int64_t depth) const {
  return (rows + kGroupRows - 1) / kGroupRows * kGroupRows * stored(depth);
}

PackedGemm::Range PackedGemm::Share::of(std::int64_t total, std::int64_t unit) const {
  return {split_edge(total, unit, thread, threads), split_edge(total, unit, thread + 1, threads)};
}

PackedGemm::Workspace PackedGemm::workspace(std::int64_t thread) {
  std::uint16_t* at = workspace_.data() + thread * kWorkspace;
  return {at, at + kActivations, at + kActivations + kPanels, at + kActivations + kPanels + kLowRows};
}

void PackedGemm::pack(const PackedProduct::Matrix& b, std::int64_t k_total, std::int64_t n_total, Range depth,
                      Range columns, std::uint16_t* out) {
  switch (b.kind) {
    case Kind::panels:
      break;
    case Kind::transposed_panels:
      kernels_.transpose_panels(b.packed, n_total, {depth.begin, depth.size(), columns.begin, columns.size()}, out);
      break;
    case Kind::int8:
      kernels_.widen_int8(columns.size(), k_total, depth.begin, depth.size(), int8_from(b.int8, k_total, columns.begin),
                          out);
      break;
    case Kind::bf16x12:
      kernels_.widen_bf16x12(columns.size(), k_total, depth.begin, depth.size(),
                             b.bf16x12 + sizes::bf16x12_bytes(columns.begin, k_total), out);
      break;
    case Kind::rows:
      kernels_.pack_rows(columns.size(), depth.size(), b.f32 + columns.begin * k_total + depth.begin, k_total, out);
      break;
    case Kind::columns:
      kernels_.pack_columns(depth.size(), columns.size(), b.f32 + depth.begin * n_total + columns.begin, n_total, out);
      break;
    case Kind::bf16_rows:
    case Kind::bf16_columns:
      pack_bf16(b, k_total, n_total, depth, columns, out);
      break;
  }
}

// Row-major bf16, which few models have: widened for pack_rows() and pack_columns(), which narrow it again, without
// loss.
void PackedGemm::pack_bf16(const PackedProduct::Matrix& b, std::int64_t k_total, std::int64_t n_total, Range depth,
                           Range columns, std::uint16_t* out) {
  constexpr std::int64_t kSome = 128;  // of depth
  float wide[kSome * kPanelRows];
  for (std::int64_t n = columns.begin; n < columns.end; n += kPanelRows, out += stored(depth.size()) * kPanelRows)
    for (std::int64_t d = depth.begin; d < depth.end; d += kSome) {
      const std::int64_t some = std::min(kSome, depth.end - d), wide_columns = std::min(kPanelRows, columns.end - n);
      std::uint16_t* const to = out + stored(d - depth.begin) * kPanelRows;
      if (b.kind == Kind::bf16_rows) {
        for (std::int64_t i = 0; i < wide_columns; ++i)
          vector_kernels().widen(some, b.bf16 + (n + i) * k_total + d, wide + i * kSome);
        kernels_.pack_rows(wide_columns, some, wide, kSome, to);
      } else {
        for (std::int64_t i = 0; i < some; ++i)
          vector_kernels().widen(wide_columns, b.bf16 + (d + i) * n_total + n, wide + i * kPanelRows);
        kernels_.pack_columns(some, wide_columns, wide, kPanelRows, to);
      }
    }
}

PackedGemm::LaidOut PackedGemm::lay_out_rows(std::int64_t rows, std::int64_t k, float scale, MatrixView x,
                                             std::uint16_t* out) {
  if (products_.unit == Unit::f32 && scale == 1.0f)
    return {reinterpret_cast<const std::uint16_t*>(x.data), stored(x.stride)};
  kernels_.lay_out_rows(rows, k, scale, x, {out, stored(k)});
  return {out, stored(k)};
}

void PackedGemm::run_blocked(const PackedProduct& p, Range rows, Range columns, const Workspace& w) {
  const bool packs = p.b.kind != Kind::panels;
  const std::int64_t deepest = packs ? packed_depth() : kDepth, low_stride = stored(p.low.rank);
  const std::int64_t blocks = (rows.size() + kRows - 1) / kRows;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const Range some{rows.begin + split_edge(rows.size(), 1, i, blocks),
                     rows.begin + split_edge(rows.size(), 1, i + 1, blocks)};
    if (p.low.z)
      kernels_.lay_out_rows(some.size(), p.low.rank, p.low.scale, {p.low.z + some.begin * p.low.rank, p.low.rank},
                            {w.z, low_stride});
    for (std::int64_t d = 0; d < p.k; d += deepest) {
      const Range depth{d, std::min(p.k, d + deepest)};
      const std::int64_t stride = stored(depth.size());
      const LaidOut a = lay_out_rows(some.size(), depth.size(), p.scale, {p.a + some.begin * p.k + d, p.k}, w.a);
      Strip strips[2] = {{a.at, a.stride, nullptr, 0, stride / 2},
                         {w.z, low_stride, w.low, low_stride * kPanelRows, low_stride / 2}};
      const bool with_low = p.low.z && depth.end == p.k;
      const std::int64_t widest = packs || with_low ? kColumns : columns.size();
      for (std::int64_t j = columns.begin; j < columns.end; j += widest) {
        const Range part{j, std::min(columns.end, j + widest)};
        if (packs) {
          pack(p.b, p.k, p.n, depth, part, w.b);
          strips[0].b = w.b, strips[0].b_stride = stride * kPanelRows;
        } else {
          strips[0].b = panels_at(p.b, p.k, j, d), strips[0].b_stride = stored(p.k) * kPanelRows;
        }
        if (with_low) pack(p.low.b, p.low.rank, p.n, {0, p.low.rank}, part, w.low);
        kernels_.block(some.size(), part.size(), strips, with_low ? 2 : 1,
                       {p.c + some.begin * p.n + j, p.n, d > 0 ? StoreMode::accumulate : p.store});
      }
    }
  }
}

// Few rows, directly from int8 weights. The workspace's blocks of activations and panels hold the quantised activations
// and their scales.
void PackedGemm::run_int8(const PackedProduct& p, Range columns, const Workspace& w) {
  auto* rows = reinterpret_cast<std::int16_t*>(w.a);
  auto* scales = reinterpret_cast<float*>(w.b);
  kernels_.quantise_rows(p.m, p.k, p.a, rows, scales);
  for (std::int64_t i = 0; i < p.m * groups_of(p.k); ++i) scales[i] *= p.scale;
  kernels_.int8_rows({p.m, columns.size(), p.k}, rows, scales, int8_from(p.b.int8, p.k, columns.begin),
                     {p.c + columns.begin, p.n, p.store});
}

// Columns of C from the rounded activations in w.a.
void PackedGemm::skinny_columns(const GemmShape& shape, const PackedProduct::Matrix& b, Range columns,
                                const Workspace& w, float* c, StoreMode store) {
  const GemmShape part{shape.m, columns.size(), shape.k};
  const TileOutput out{c + columns.begin, shape.n, store};
  if (b.kind == Kind::bf16x12)
    kernels_.skinny_bf16x12(part, w.a, b.bf16x12 + sizes::bf16x12_bytes(columns.begin, shape.k), out);
  else
    kernels_.skinny_rows(part, w.a, panels_at(b, shape.k, columns.begin, 0), out);
}

void PackedGemm::run_skinny(const PackedProduct& p, Range columns, const Workspace& w) {
  kernels_.lay_out_rows(p.m, p.k, p.scale, {p.a, p.k}, {w.a, stored(p.k)});
  skinny_columns({p.m, p.n, p.k}, p.b, columns, w, p.c, p.store);
}

void PackedGemm::prepare() {
  if (workspace_) return;
  workspace_ = DeviceBuffer<std::uint16_t>(device_.arena, packed_blocks(device_.pool.threads()));
}

// Panels of op(B) [depth, columns].
void PackedGemm::pack_dense(MatrixOperand b, std::int64_t depth, std::int64_t columns, std::uint16_t* out) {
  if (b.transpose == Transpose::yes)
    kernels_.pack_rows(columns, depth, b.data, b.stride, out);
  else
    kernels_.pack_columns(depth, columns, b.data, b.stride, out);
}

KeptPanels PackedGemm::keep(std::int64_t thread, MatrixOperand b, std::int64_t depth, std::int64_t columns,
                            std::int64_t used) {
  const std::int64_t stride = stored(depth) * kPanelRows, end = used + (columns + kPanelRows - 1) / kPanelRows * stride;
  if (end > kKeptPanels) return {nullptr, 0, used};
  std::uint16_t* const at = workspace(thread).a + kBlockActivations + used;
  pack_dense(b, depth, columns, at);
  return {at, stride, end};
}

void PackedGemm::block(std::int64_t thread, const GemmShape& shape, MatrixOperand a, const BlockOperand& b,
                       const TileOutput& out, float scale) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  const Workspace w = workspace(thread);
  for (std::int64_t d = 0; d < k; d += packed_depth()) {
    const std::int64_t depth = std::min(packed_depth(), k - d), stride = stored(depth);
    for (std::int64_t i = 0; i < m; i += kRows) {
      const std::int64_t rows = std::min(kRows, m - i);
      LaidOut left{w.a, stride};
      if (a.transpose == Transpose::no)
        left = lay_out_rows(rows, depth, scale, {a.data + i * a.stride + d, a.stride}, w.a);
      else
        kernels_.lay_out_columns(depth, rows, scale, {a.data + d * a.stride + i, a.stride}, {w.a, stride});
      const std::int64_t widest = b.kept.at ? n : kColumns;
      for (std::int64_t j = 0; j < n; j += widest) {
        const std::int64_t columns = std::min(widest, n - j);
        Strip strip{left.at, left.stride, w.b, stride * kPanelRows, stride / 2};
        if (b.kept.at) {
          strip.b = b.kept.at + stored(d) * kPanelRows, strip.b_stride = b.kept.stride;
        } else {
          const MatrixOperand& from = b.dense;
          const std::int64_t skipped = from.transpose == Transpose::yes ? j * from.stride + d : d * from.stride + j;
          pack_dense({from.data + skipped, from.stride, from.transpose}, depth, columns, w.b);
        }
        kernels_.block(rows, columns, &strip, 1,
                       {out.c + i * out.stride + j, out.stride, d > 0 ? StoreMode::accumulate : out.store});
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
      const Range columns{split_edge(p.n, kPanelRows, t, threads), split_edge(p.n, kPanelRows, t + 1, threads)};
      const Range rows{split_edge(p.m, row_unit(), t, threads), split_edge(p.m, row_unit(), t + 1, threads)};
      if (p.b.kind == Kind::int8 && p.m <= kMaxInt8Rows && p.m * p.k <= kActivations)
        run_int8(p, columns, w);
      else if (p.m >= gemm_kernels_.least_rows)
        by_rows ? run_grouped(p, rows, {0, p.n}, w) : run_grouped(p, {0, p.m}, columns, w);
      else if ((p.b.kind == Kind::panels || p.b.kind == Kind::bf16x12) && p.m <= kMaxSkinnyRows &&
               p.m * stored(p.k) <= kActivations && !p.low.z)
        run_skinny(p, columns, w);
      else
        by_rows ? run_blocked(p, rows, {0, p.n}, w) : run_blocked(p, {0, p.m}, columns, w);
    }
  });
}

// Products of at most kMaxSkinnyRows rows, as in decoding: everything that reads one input, from its norm to GeGLU, in
// one dispatch. Each thread normalises and rounds all rows itself, which costs less than waiting for another thread.

bool PackedGemm::fits_skinny(std::int64_t m, std::int64_t k) const {
  return m > 0 && m <= kMaxSkinnyRows && (stored(k) + 2 * k) * kMaxSkinnyRows <= kActivations;
}

void PackedGemm::skinny_products(std::int64_t m, std::int64_t k, const Activations& x,
                                 std::span<const FusedProduct> branches, const RowNorm& norm, Share share) {
  const VectorKernels& v = vector_kernels();
  const Workspace w = workspace(share.thread);
  const float* rows = x.x;
  if (norm.inv) {
    auto* const normed = reinterpret_cast<float*>(w.a + kMaxSkinnyRows * stored(k));
    float unused[kMaxSkinnyRows];
    v.rms_norm({m, k, x.x, x.gain}, norm.eps, normed, share.thread == 0 ? norm.inv : unused);
    rows = normed;
  }
  for (const FusedProduct& b : branches) {
    const Range some = share.of(b.low.rank, k <= kShortRow ? kShortRows : kFactorRows);
    if (some.size() > 0) v.dot_rows({m, b.low.rank, k}, rows, b.low.first.f32, b.low.z, {}, {some.begin, some.end});
  }
  auto* const whole = reinterpret_cast<std::int16_t*>(w.a);
  auto* const scales = reinterpret_cast<float*>(w.b);
  const bool int8 = branches.front().b.kind == Kind::int8, grouped = !int8 && m >= gemm_kernels_.least_rows;
  if (int8) kernels_.quantise_rows(m, k, rows, whole, scales);
  if (!int8 && !grouped) kernels_.lay_out_rows(m, k, 1.0f, {rows, k}, {w.a, stored(k)});
  for (const FusedProduct& b : branches) {
    const Range columns = share.of(b.n, kPanelRows);
    if (int8)
      kernels_.int8_rows({m, columns.size(), k}, whole, scales, int8_from(b.b.int8, k, columns.begin),
                         {b.c + columns.begin, b.n, b.store});
    else if (grouped)
      multiply_depths({{rows, k, nullptr, {}}, k, 1}, {0, m},
                      {{.b = b.b, .n = b.n, .c = b.c, .store = b.store}, columns}, w);
    else
      skinny_columns({m, b.n, k}, b.b, columns, w, b.c, b.store);
  }
}

void PackedGemm::multiply_skinny(std::int64_t m, std::int64_t k, const Activations& x,
                                 std::span<const FusedProduct> branches, const RowNorm& norm, float* gated) {
  const VectorKernels& v = vector_kernels();
  double work = 0;
  bool low = false;
  for (const FusedProduct& b : branches)
    work += 2.0 * static_cast<double>(m * k) * static_cast<double>(b.n), low = low || b.low.rank > 0;
  const std::int64_t threads = work < kInlineFlops ? 1 : device_.pool.threads();
  prepare();
  std::latch all_z_written(threads);
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) skinny_products(m, k, x, branches, norm, {t, threads});
    if (low) all_z_written.arrive_and_wait(last - first);
    for (std::int64_t t = first; t < last; ++t) {
      const Share share{t, threads};
      for (const FusedProduct& b : branches) {
        const Range columns = share.of(b.n, kPanelRows);
        if (b.low.rank > 0)
          v.dot_rows({m, b.n, b.low.rank}, b.low.z, b.low.second.f32, b.c, {b.low.scale, 1},
                     {columns.begin, columns.end});
      }
      if (!gated) continue;
      const std::int64_t n = branches[0].n;
      const Range columns = share.of(n, kPanelRows);
      for (std::int64_t at = columns.begin; at < m * n; at += n)
        v.geglu(columns.size(), branches[0].c + at, branches[1].c + at, gated + at);
    }
  });
}

// Products of many rows: the activations are laid out once for several weights and their LoRA branches. Sums over rows
// give the gradients of LoRA factors.

std::int64_t PackedGemm::depths_of(std::int64_t k) const {
  return (k + gemm_kernels_.most_depth - 1) / gemm_kernels_.most_depth;
}

std::int64_t PackedGemm::block_rows(std::int64_t depth) const {
  return std::min(kRows, kActivations / stored(depth)) / row_unit() * row_unit();
}

// z (+)= X first for one block, from its activations in w.a.
void PackedGemm::multiply_low_rank(const LeftOperand& left, Range rows, Range depth, const FusedProduct& branch,
                                   const Workspace& w) {
  const std::int64_t rank = branch.low.rank, deep = stored(depth.size());
  const std::int64_t widest = kPanels / deep / kPanelRows * kPanelRows;
  for (std::int64_t j = 0; j < rank; j += widest) {
    const Range columns{j, std::min(rank, j + widest)};
    pack(branch.low.first, left.k, rank, depth, columns, w.b);
    const GroupedStrip strip{w.a, w.b, deep * kPanelRows, deep / 2};
    gemm_kernels_.block(
        rows.size(), columns.size(), &strip, 1,
        {branch.low.z + rows.begin * rank + j, rank, depth.begin > 0 ? StoreMode::accumulate : StoreMode::write},
        nullptr);
  }
  float* const z = branch.low.z + rows.begin * rank;
  if (depth.end == left.k && branch.low.z_scale != 1)
    for (std::int64_t i = 0; i < rows.size() * rank; ++i) z[i] *= branch.low.z_scale;
}

// Weights that are stored as they are read; nothing for others.
PackedGemm::Source PackedGemm::source_of(const FusedProduct& branch, std::int64_t k, Range columns) const {
  if (columns.size() <= 0) return {};
  if (branch.b.kind == Kind::panels) return {panels_at(branch.b, k, columns.begin, 0), columns.size() * stored(k)};
  if (branch.b.kind == Kind::bf16x12)
    return {reinterpret_cast<const std::uint16_t*>(branch.b.bf16x12 + sizes::bf16x12_bytes(columns.begin, k)),
            sizes::bf16x12_bytes(columns.size(), k) / 2};
  return {};
}

// The product of one block of rows and depth, from its activations in w.a; the last depth adds the LoRA branch from z.
void PackedGemm::multiply_block(const LeftOperand& left, Range rows, Range depth, const Part& part,
                                const Workspace& w) {
  const FusedProduct& branch = part.branch;
  const std::int64_t deep = stored(depth.size()), rank = branch.low.rank;
  const bool with_low = rank > 0 && depth.end == left.k;
  if (with_low)
    gemm_kernels_.groups(rows.size(), rank, {branch.low.z + rows.begin * rank, rank, nullptr, {}}, branch.low.scale,
                         w.z);
  const TileOutput out{branch.c + rows.begin * branch.n, branch.n,
                       depth.begin > 0 ? StoreMode::accumulate : branch.store};
  const bool few = kernels_.fma_bf16x12 && branch.b.kind == Kind::bf16x12 && rows.size() <= kFewRows &&
                   depth.size() % kFewRowsDepth == 0;
  if (few) {
    auto* const widened = reinterpret_cast<float*>(w.a + (rows.size() * deep + 1) / 2 * 2);
    kernels_.fma_bf16x12(
        rows.size(), part.columns.size(), {w.a, widened},
        {branch.b.bf16x12 + sizes::bf16x12_bytes(part.columns.begin, left.k), left.k, depth.begin, depth.size()},
        {out.c + part.columns.begin, out.stride, out.store});
    if (!with_low) return;
  }
  const std::int64_t most = std::min(kColumns, kPanels / deep / kPanelRows * kPanelRows);
  const std::int64_t widest =
      std::min(most, std::max(kFewestColumns, gemm_kernels_.part_elements / deep / kPanelRows * kPanelRows));
  for (std::int64_t j = part.columns.begin; j < part.columns.end; j += widest) {
    const Range some{j, std::min(part.columns.end, j + widest)};
    GroupedStrip strips[2] = {{w.a, w.b, deep * kPanelRows, deep / 2},
                              {w.z, w.low, stored(rank) * kPanelRows, stored(rank) / 2}};
    if (with_low) pack(branch.low.second, rank, branch.n, {0, rank}, some, w.low);
    if (few) {
      gemm_kernels_.block(rows.size(), some.size(), strips + 1, 1, {out.c + j, out.stride, StoreMode::accumulate},
                          nullptr);
      continue;
    }
    if (branch.b.kind == Kind::panels)
      strips[0].b = panels_at(branch.b, left.k, j, depth.begin), strips[0].b_stride = stored(left.k) * kPanelRows;
    else
      pack(branch.b, left.k, branch.n, depth, some, w.b);
    const Source next = some.end < part.columns.end
                            ? source_of(branch, left.k, {some.end, std::min(part.columns.end, some.end + widest)})
                            : part.next;
    const std::int64_t run = deep / 8 * kLine;  // of one tile
    Prefetch ahead{next.at, run, depth.size() == left.k && run > 0 ? next.elements / run : 0};
    gemm_kernels_.block(rows.size(), some.size(), strips, with_low ? 2 : 1, {out.c + j, out.stride, out.store}, &ahead);
  }
}

// Columns of both branches and of their gated product are computed while they are in L2.
void PackedGemm::multiply_gated(const LeftOperand& left, Range rows, std::span<const FusedProduct> branches,
                                const Workspace& w, float* gated) {
  const std::int64_t n = branches[0].n;
  const auto columns_from = [&](std::int64_t j) -> Range { return {j, std::min(n, j + kGatedColumns)}; };
  for (std::int64_t j = 0; j < n; j += kGatedColumns) {
    const Range columns = columns_from(j), next = columns_from(columns.end);
    multiply_block(left, rows, {0, left.k}, {branches[0], columns, source_of(branches[1], left.k, columns)}, w);
    multiply_block(left, rows, {0, left.k}, {branches[1], columns, source_of(branches[0], left.k, next)}, w);
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      vector_kernels().geglu(columns.size(), branches[0].c + row * n + j, branches[1].c + row * n + j,
                             gated + row * n + j);
  }
}

bool PackedGemm::can_gate_alone(std::int64_t k, std::span<const FusedProduct> branches) const {
  return 2 * kGatedColumns * stored(k) <= kPanels && std::all_of(branches.begin(), branches.end(), [](const auto& b) {
           return b.b.kind != Kind::panels && b.n % kPanelRows == 0 && b.low.rank == 0;
         });
}

// Computes the gated product of branches that are not kept. Their columns are packed side by side, so that the
// activations are read once for both, and their products lie in w.z, so that they are never written to memory.
void PackedGemm::gate_alone(const LeftOperand& left, Range rows, std::span<const FusedProduct> branches,
                            const Workspace& w, float* gated) {
  static_assert(2 * kRows * kGatedColumns * sizeof(float) <= kLowRows * sizeof(std::uint16_t));
  const std::int64_t n = branches[0].n, deep = stored(left.k), run = deep / 8 * kLine;
  float* const tile = reinterpret_cast<float*>(w.z);
  for (std::int64_t j = 0; j < n; j += kGatedColumns) {
    const Range columns{j, std::min(n, j + kGatedColumns)}, next{columns.end, std::min(n, columns.end + kGatedColumns)};
    const std::int64_t width = columns.size(), stride = 2 * width;
    for (std::int64_t i = 0; i < 2; ++i)
      pack(branches[static_cast<size_t>(i)].b, left.k, n, {0, left.k}, columns, w.b + i * width * deep);
    for (std::int64_t i = 0; i < 2; ++i) {  // one half of the rows prefetches each branch
      const std::int64_t first = split_edge(rows.size(), row_unit(), i, 2),
                         some = split_edge(rows.size(), row_unit(), i + 1, 2) - first;
      const Source source = source_of(branches[static_cast<size_t>(i)], left.k, next);
      Prefetch ahead{source.at, run, run > 0 ? source.elements / run : 0};
      const GroupedStrip strip{w.a + first * deep, w.b, deep * kPanelRows, deep / 2};
      gemm_kernels_.block(some, stride, &strip, 1, {tile + first * stride, stride, StoreMode::write}, &ahead);
    }
    for (std::int64_t row = 0; row < rows.size(); ++row)
      vector_kernels().geglu(width, tile + row * stride, tile + row * stride + width,
                             gated + (rows.begin + row) * n + j);
  }
}

void PackedGemm::run_grouped(const PackedProduct& p, Range rows, Range columns, const Workspace& w) {
  const LeftOperand left{{p.a, p.k, nullptr, {}}, p.k, p.scale};
  FusedProduct branch{.b = p.b, .n = p.n, .c = p.c, .store = p.store};
  if (p.low.z) {
    branch.low.second = p.low.b, branch.low.rank = p.low.rank, branch.low.scale = p.low.scale;
    branch.low.z = const_cast<float*>(p.low.z);  // only read: z is computed already
  }
  const std::int64_t depths = depths_of(p.k), most = block_rows((p.k + depths - 1) / depths + depth_unit());
  const std::int64_t blocks = (rows.size() + most - 1) / most;
  for (std::int64_t i = 0; i < blocks; ++i)
    multiply_depths(left,
                    {rows.begin + split_edge(rows.size(), row_unit(), i, blocks),
                     rows.begin + split_edge(rows.size(), row_unit(), i + 1, blocks)},
                    {branch, columns}, w);
}

void PackedGemm::multiply_depths(const LeftOperand& left, Range rows, const Part& part, const Workspace& w) {
  const std::int64_t depths = depths_of(left.k);
  for (std::int64_t d = 0; d < depths; ++d) {
    const Range depth{split_edge(left.k, depth_unit(), d, depths), split_edge(left.k, depth_unit(), d + 1, depths)};
    gemm_kernels_.groups(rows.size(), depth.size(), left.x.from(rows.begin, depth.begin), left.scale, w.a);
    multiply_block(left, rows, depth, part, w);
  }
}

bool PackedGemm::can_fuse(std::int64_t m, std::int64_t k) const {
  return m >= 2 * kGroupRows * device_.pool.threads() && k <= gemm_kernels_.most_fused_depth;
}

void PackedGemm::multiply_fused(std::int64_t m, std::int64_t k, const Activations& x,
                                std::span<const FusedProduct> branches, const RowNorm& norm, float* gated) {
  const LeftOperand left{x, k, 1};
  const Range depth{0, k};
  const std::int64_t threads = device_.pool.threads(), most = block_rows(k);
  prepare();
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Range rows{split_edge(m, row_unit(), t, threads), split_edge(m, row_unit(), t + 1, threads)};
      const std::int64_t blocks = (rows.size() + most - 1) / most;
      for (std::int64_t i = 0; i < blocks; ++i) {
        const Range some{rows.begin + split_edge(rows.size(), row_unit(), i, blocks),
                         rows.begin + split_edge(rows.size(), row_unit(), i + 1, blocks)};
        const Activations here = x.from(some.begin, 0);
        for (std::int64_t g = 0; g < some.size();
             g += kGroupRows) {  // the rows of a group stay in L1 between norm and layout
          const std::int64_t count = std::min(kGroupRows, some.size() - g);
          if (norm.inv)
            for (std::int64_t r = 0; r < count; ++r)
              norm.inv[some.begin + g + r] = vector_kernels().inverse_rms(k, here.x + (g + r) * x.stride, norm.eps);
          gemm_kernels_.groups(count, k, here.from(g, 0), 1.0f, w.a + groups_size(g, k));
        }
        for (const FusedProduct& branch : branches)
          if (branch.low.rank > 0) multiply_low_rank(left, some, depth, branch, w);
        if (gated) {
          branches[0].c ? multiply_gated(left, some, branches, w, gated) : gate_alone(left, some, branches, w, gated);
          continue;
        }
        for (const FusedProduct& branch : branches) multiply_block(left, some, depth, {branch, {0, branch.n}}, w);
      }
    }
  });
}

void PackedGemm::run_transposed(const GemmShape& shape, const float* a, const float* b, float* c, float scale,
                                StoreMode store) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  const std::int64_t threads =
      2.0 * static_cast<double>(m * n) * static_cast<double>(k) < kInlineFlops ? 1 : device_.pool.threads();
  prepare();
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Share share{t, threads};
      const Range rows = m >= n ? share.of(m, row_unit()) : Range{0, m},
                  columns = m >= n ? Range{0, n} : share.of(n, kPanelRows);
      for (std::int64_t j = columns.begin; j < columns.end; j += kColumns)
        for (std::int64_t d = 0; d < k; d += packed_depth()) {
          const std::int64_t width = std::min(kColumns, columns.end - j), depth = std::min(packed_depth(), k - d),
                             stride = stored(depth);
          kernels_.pack_columns(depth, width, b + d * n + j, n, w.b);
          for (std::int64_t i = rows.begin; i < rows.end; i += kRows) {
            const std::int64_t some = std::min(kRows, rows.end - i);
            kernels_.lay_out_columns(depth, some, scale, {a + d * m + i, m}, {w.a, stride});
            const Strip strip{w.a, stride, w.b, stride * kPanelRows, stride / 2};
            kernels_.block(some, width, &strip, 1, {c + i * n + j, n, d > 0 ? StoreMode::accumulate : store});
          }
        }
    }
  });
}

void PackedGemm::add_lora_gradient(const LoraGradient& gradient) {
  const std::int64_t threads = device_.pool.threads(), m = gradient.m, rank = gradient.rank, columns = gradient.columns;
  float* const g = gradient.g;
  const bool transposed = gradient.transpose == Transpose::yes;
  prepare();
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      auto* const sum = reinterpret_cast<float*>(w.z);  // [rank part, width]
      const std::int64_t end = split_edge(columns, kPanelRows, t + 1, threads);
      for (std::int64_t j = split_edge(columns, kPanelRows, t, threads); j < end; j += kColumns)
        for (std::int64_t r = 0; r < rank; r += kSumRank) {
          const std::int64_t width = std::min(kColumns, end - j), some = std::min(kSumRank, rank - r);
          for (std::int64_t row = 0; row < m; row += packed_depth()) {
            const std::int64_t depth = std::min(packed_depth(), m - row), stride = stored(depth);
            kernels_.lay_out_columns(depth, some, gradient.scale, {gradient.l + row * rank + r, rank}, {w.a, stride});
            gemm_kernels_.panels(depth, width, gradient.x.from(row, j), w.b);
            const Strip strip{w.a, stride, w.b, stride * kPanelRows, stride / 2};
            kernels_.block(some, width, &strip, 1, {sum, width, row > 0 ? StoreMode::accumulate : StoreMode::write});
          }
          for (std::int64_t a = 0; a < some; ++a)
            for (std::int64_t b = 0; b < width; ++b)
              g[transposed ? (j + b) * rank + r + a : (r + a) * columns + j + b] += sum[a * width + b];
        }
    }
  });
}

// Products with the output head, which is as wide as the vocabulary. stream_tiles() computes logits tile by tile, and
// multiply_stripes() takes their gradients stripe by stripe. Both prefetch the next stripe of weights.

void PackedGemm::stream_tiles(const GemmShape& shape, const float* a, const std::uint16_t* b,
                              const std::function<void(const Tile&)>& use) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  const std::int64_t threads = device_.pool.threads(), most = kActivations / k / row_unit() * row_unit();
  prepare();
  if (!tiles_) tiles_ = DeviceBuffer<float>(device_.arena, logit_tiles(device_.pool.threads()));
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      float* const tile = tiles_.data() + t * sizes::kLogitTile;
      const Range columns{split_edge(n, kStripe, t, threads), split_edge(n, kStripe, t + 1, threads)};
      for (std::int64_t row = 0; row < m; row += most) {
        const Range rows{row, std::min(m, row + most)};
        gemm_kernels_.groups(rows.size(), k, {a + row * k, k, nullptr, {}}, 1.0f, w.a);
        for (std::int64_t j = columns.begin; j < columns.end; j += kStripe) {
          const std::int64_t width = std::min(kStripe, columns.end - j), run = k / 8 * kLine;  // of one tile
          Prefetch ahead{b + (j + width) * k, run,
                         std::min(kStripe, columns.end - j - width) * k / std::max(run, kLine)};
          for (std::int64_t r = 0; r < rows.size(); r += gemm_kernels_.tile_rows) {
            const std::int64_t some = std::min(gemm_kernels_.tile_rows, rows.size() - r);
            const GroupedStrip strip{w.a + r * k, b + j * k, k * kPanelRows, k / 2};
            gemm_kernels_.block(some, width, &strip, 1, {tile, width, StoreMode::write}, &ahead);
            use({static_cast<int>(t), row + r, some, j, width, tile, width});
          }
        }
      }
    }
  });
}

void PackedGemm::multiply_stripes(const GemmShape& shape, std::int64_t max_rows, const std::uint16_t* b,
                                  const std::function<void(const Stripe&, std::uint16_t*)>& fill, float* c) {
  const std::int64_t m = shape.m, n = shape.n, k = shape.k;
  const std::int64_t threads = device_.pool.threads(), tallest = kActivations / kStripe / row_unit() * row_unit();
  prepare();
  if (const Allocation need = partial_gradients(max_rows, n, device_.pool.threads());
      !serves(partial_.allocation(), need)) {
    partial_ = {};
    partial_ = DeviceBuffer<float>(device_.arena, need);
  }
  const auto part = [&](std::int64_t t) { return t == 0 ? c : partial_.data() + (t - 1) * m * n; };
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Range depth{split_edge(k, kStripe, t, threads), split_edge(k, kStripe, t + 1, threads)};
      if (depth.size() == 0) std::fill_n(part(t), m * n, 0.0f);
      for (std::int64_t j = depth.begin; j < depth.end; j += kStripe)
        for (std::int64_t row = 0; row < m; row += tallest) {
          const std::int64_t deep = std::min(kStripe, depth.end - j), rows = std::min(tallest, m - row);
          fill({row, rows, j, deep}, w.a);
          for (std::int64_t i = 0; i < n; i += kTransposedColumns) {
            const std::int64_t columns = std::min(kTransposedColumns, n - i);
            kernels_.transpose_panels(b, n, {j, deep, i, columns}, w.b);
            // Prefetches the columns that are transposed next: a range in each panel of this depth or of the next
            // stripe.
            const bool ends = i + kTransposedColumns >= n;
            const std::int64_t from = ends ? j + deep : j, panels = std::min(kStripe, depth.end - from) / kPanelRows;
            Prefetch ahead{b + packed_index(n, from, ends ? 0 : i + kTransposedColumns), n * kPanelRows, panels};
            const GroupedStrip strip{w.a, w.b, deep * kPanelRows, deep / 2};
            gemm_kernels_.block(rows, columns, &strip, 1,
                                {part(t) + row * n + i, n, j > depth.begin ? StoreMode::accumulate : StoreMode::write},
                                &ahead);
          }
        }
    }
  });
  device_.pool.parallel_for(m * n, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = 1; t < threads; ++t) vector_kernels().add(end - begin, part(t) + begin, 1.0f, c + begin);
  });
}

}  // namespace mw::engine
