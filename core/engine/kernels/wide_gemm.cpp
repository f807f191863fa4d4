// SPDX-License-Identifier: Apache-2.0
// PackedGemm's products of many rows: one layout of the activations for several weights and their LoRA branches, and
// sums over rows for the gradients of LoRA factors.
#include <algorithm>

#include "core/engine/kernels/packed_blocks.h"

namespace mw::engine {
namespace {

using Kind = PackedProduct::Kind;

constexpr std::int64_t kMostDepth = 4096,
                       kDepthUnit = sizes::kSlimDepth;  // a block of panels is at least 64 columns wide
constexpr std::int64_t kSumRows = 512, kSumRank = 64;

std::int64_t groups_size(std::int64_t rows, std::int64_t depth) {
  return (rows + kGroupRows - 1) / kGroupRows * kGroupRows * even(depth);
}
static_assert(kSumRank * kColumns * 2 <= kLowRows, "sums of a block of columns take the place of z");

}  // namespace

struct PackedGemm::Left {
  Activations x;
  std::int64_t k = 0;
  float scale = 1;
};

std::int64_t PackedGemm::block_rows(std::int64_t depth) const {
  return std::min(kRows, kActivations / even(depth) / kGroupRows * kGroupRows);
}

// z (+)= X first of one block, from its activations in w.a.
void PackedGemm::low_rows(const Left& left, Range rows, Range depth, const Branch& branch, const Workspace& w) {
  const std::int64_t rank = branch.low.rank, deep = even(depth.size());
  const std::int64_t widest = kPanels / deep / kPanelRows * kPanelRows;
  for (std::int64_t j = 0; j < rank; j += widest) {
    const Range columns{j, std::min(rank, j + widest)};
    pack(branch.low.first, left.k, rank, depth, columns, w.b);
    const WideStrip strip{w.a, w.b, deep * kPanelRows, deep / 2};
    wide_.block(rows.size(), columns.size(), &strip, 1, branch.low.z + rows.begin * rank + j, rank,
                depth.begin > 0 ? Store::accumulate : Store::write, nullptr);
  }
  float* const z = branch.low.z + rows.begin * rank;
  if (depth.end == left.k && branch.low.z_scale != 1)
    for (std::int64_t i = 0; i < rows.size() * rank; ++i) z[i] *= branch.low.z_scale;
}

// One block of rows and depth, from its activations in w.a and, at the last depth, z.
void PackedGemm::wide_block(const Left& left, Range rows, Range depth, const Branch& branch, Range columns,
                            const Workspace& w) {
  const std::int64_t deep = even(depth.size()), rank = branch.low.rank;
  const bool with_low = rank > 0 && depth.end == left.k;
  if (with_low)
    wide_.groups(rows.size(), rank, {branch.low.z + rows.begin * rank, rank, nullptr, {}}, branch.low.scale, w.z);
  const std::int64_t widest = std::min(kColumns, kPanels / deep / kPanelRows * kPanelRows);
  for (std::int64_t j = columns.begin; j < columns.end; j += widest) {
    const Range part{j, std::min(columns.end, j + widest)};
    WideStrip strips[2] = {{w.a, w.b, deep * kPanelRows, deep / 2},
                           {w.z, w.low, even(rank) * kPanelRows, even(rank) / 2}};
    if (branch.b.kind == Kind::panels)
      strips[0].b = branch.b.packed + packed_index(left.k, j, depth.begin), strips[0].b_stride = left.k * kPanelRows;
    else
      pack(branch.b, left.k, branch.n, depth, part, w.b);
    if (with_low) pack(branch.low.second, rank, branch.n, {0, rank}, part, w.low);
    wide_.block(rows.size(), part.size(), strips, with_low ? 2 : 1, branch.c + rows.begin * branch.n + j, branch.n,
                depth.begin > 0 ? Store::accumulate : branch.store, nullptr);
  }
}

void PackedGemm::run_wide(const PackedProduct& p, Range rows, Range columns, const Workspace& w) {
  const Left left{{p.a, p.k, nullptr, {}}, p.k, p.scale};
  Branch branch{.b = p.b, .n = p.n, .c = p.c, .store = p.store, .low = {}};
  if (p.low.z) {
    branch.low.second = p.low.b, branch.low.rank = p.low.rank, branch.low.scale = p.low.scale;
    branch.low.z = const_cast<float*>(p.low.z);  // only read: it is there already
  }
  const std::int64_t depths = (p.k + kMostDepth - 1) / kMostDepth;
  const std::int64_t most = block_rows((p.k + depths - 1) / depths + kDepthUnit);
  const std::int64_t blocks = (rows.size() + most - 1) / most;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const Range some{rows.begin + edge(rows.size(), kGroupRows, i, blocks),
                     rows.begin + edge(rows.size(), kGroupRows, i + 1, blocks)};
    for (std::int64_t d = 0; d < depths; ++d) {
      const Range depth{edge(p.k, kDepthUnit, d, depths), edge(p.k, kDepthUnit, d + 1, depths)};
      wide_.groups(some.size(), depth.size(), left.x.from(some.begin, depth.begin), left.scale, w.a);
      wide_block(left, some, depth, branch, columns, w);
    }
  }
}

bool PackedGemm::fuses(std::int64_t m, std::int64_t k) const {
  return m >= 2 * kGroupRows * device_.pool.threads() && k <= kMostDepth * 2;
}

void PackedGemm::fused(std::int64_t m, std::int64_t k, const Activations& x, std::span<const Branch> branches,
                       const RowNorm& norm) {
  const Left left{x, k, 1};
  const Range depth{0, k};
  const std::int64_t threads = device_.pool.threads(), most = block_rows(k);
  prepare();
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Range rows{edge(m, kGroupRows, t, threads), edge(m, kGroupRows, t + 1, threads)};
      const std::int64_t blocks = (rows.size() + most - 1) / most;
      for (std::int64_t i = 0; i < blocks; ++i) {
        const Range some{rows.begin + edge(rows.size(), kGroupRows, i, blocks),
                         rows.begin + edge(rows.size(), kGroupRows, i + 1, blocks)};
        const Activations here = x.from(some.begin, 0);
        for (std::int64_t g = 0; g < some.size(); g += kGroupRows) {  // a group's rows stay in L1 between the two
          const std::int64_t count = std::min(kGroupRows, some.size() - g);
          if (norm.inv)
            for (std::int64_t r = 0; r < count; ++r)
              norm.inv[some.begin + g + r] = vector_kernels().inverse_rms(k, here.x + (g + r) * x.stride, norm.eps);
          wide_.groups(count, k, here.from(g, 0), 1.0f, w.a + groups_size(g, k));
        }
        for (const Branch& branch : branches) {
          if (branch.low.rank > 0) low_rows(left, some, depth, branch, w);
          wide_block(left, some, depth, branch, {0, branch.n}, w);
        }
      }
    }
  });
}

void PackedGemm::sums(std::int64_t m, std::int64_t rank, std::int64_t columns, float scale, const float* l,
                      const Activations& x, Sum how, float* g) {
  const std::int64_t threads = device_.pool.threads();
  prepare();
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      auto* const sum = reinterpret_cast<float*>(w.z);  // [rank part, width]
      const std::int64_t end = edge(columns, kPanelRows, t + 1, threads);
      for (std::int64_t j = edge(columns, kPanelRows, t, threads); j < end; j += kColumns)
        for (std::int64_t r = 0; r < rank; r += kSumRank) {
          const std::int64_t width = std::min(kColumns, end - j), some = std::min(kSumRank, rank - r);
          for (std::int64_t row = 0; row < m; row += kSumRows) {
            const std::int64_t depth = std::min(kSumRows, m - row), stride = even(depth);
            kernels_.narrow_columns(depth, some, scale, l + row * rank + r, rank, w.a, stride);
            wide_.panels(depth, width, x.from(row, j), w.b);
            const Strip strip{w.a, stride, w.b, stride * kPanelRows, stride / 2};
            kernels_.block(some, width, &strip, 1, sum, width, row > 0 ? Store::accumulate : Store::write);
          }
          for (std::int64_t a = 0; a < some; ++a)
            for (std::int64_t b = 0; b < width; ++b)
              g[how == Sum::as_is ? (r + a) * columns + j + b : (j + b) * rank + r + a] += sum[a * width + b];
        }
    }
  });
}

}  // namespace mw::engine
