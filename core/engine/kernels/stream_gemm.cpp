// SPDX-License-Identifier: Apache-2.0
// PackedGemm's products with the head, as wide as the vocabulary: logits leave as tiles, their gradients come in
// stripe by stripe, and the next stripe of weights is fetched while one is worked on.
#include <algorithm>

#include "core/engine/kernels/packed_blocks.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kLine = 32;    // elements of a cache line
constexpr std::int64_t kTurned = 64;  // columns: a stripe of them stays in L2 with everything else

}  // namespace

void PackedGemm::stream(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const std::uint16_t* b,
                        const std::function<void(const Tile&)>& take) {
  const std::int64_t threads = device_.pool.threads(), most = kActivations / k / kGroupRows * kGroupRows;
  prepare();
  if (!tiles_)
    tiles_ = Buffer<float>(device_.arena, MemoryCategory::workspace, static_cast<size_t>(threads * sizes::kLogitTile),
                           "tiles of logits");
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      float* const tile = tiles_.data() + t * sizes::kLogitTile;
      const Range columns{edge(n, kStripe, t, threads), edge(n, kStripe, t + 1, threads)};
      for (std::int64_t row = 0; row < m; row += most) {
        const Range rows{row, std::min(m, row + most)};
        wide_.groups(rows.size(), k, {a + row * k, k, nullptr, {}}, 1.0f, w.a);
        for (std::int64_t j = columns.begin; j < columns.end; j += kStripe) {
          const std::int64_t width = std::min(kStripe, columns.end - j), run = k / 8 * kLine;  // of one tile
          Ahead ahead{b + (j + width) * k, run, std::min(kStripe, columns.end - j - width) * k / std::max(run, kLine)};
          for (std::int64_t r = 0; r < rows.size(); r += kGroupRows) {
            const std::int64_t some = std::min(kGroupRows, rows.size() - r);
            const WideStrip strip{w.a + r * k, b + j * k, k * kPanelRows, k / 2};
            wide_.block(some, width, &strip, 1, tile, width, Store::write, &ahead);
            take({static_cast<int>(t), row + r, some, j, width, tile, width});
          }
        }
      }
    }
  });
}

void PackedGemm::gather(std::int64_t m, std::int64_t most, std::int64_t n, std::int64_t k, const std::uint16_t* b,
                        const std::function<void(const Stripe&, std::uint16_t*)>& fill, float* c) {
  const std::int64_t threads = device_.pool.threads(), tallest = kActivations / kStripe / kGroupRows * kGroupRows;
  prepare();
  if (partial_.size() < static_cast<size_t>((threads - 1) * most * n)) {
    partial_ = {};
    partial_ = Buffer<float>(device_.arena, MemoryCategory::workspace, static_cast<size_t>((threads - 1) * most * n),
                             "partial gradients");
  }
  const auto part = [&](std::int64_t t) { return t == 0 ? c : partial_.data() + (t - 1) * m * n; };
  device_.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Workspace w = workspace(t);
      const Range depth{edge(k, kStripe, t, threads), edge(k, kStripe, t + 1, threads)};
      if (depth.size() == 0) std::fill_n(part(t), m * n, 0.0f);
      for (std::int64_t j = depth.begin; j < depth.end; j += kStripe)
        for (std::int64_t row = 0; row < m; row += tallest) {
          const std::int64_t deep = std::min(kStripe, depth.end - j), rows = std::min(tallest, m - row);
          fill({row, rows, j, deep}, w.a);
          for (std::int64_t i = 0; i < n; i += kTurned) {
            const std::int64_t columns = std::min(kTurned, n - i);
            kernels_.turn(n, j, deep, i, columns, b, w.b);
            // The columns turned next, or the first of the next stripe: a run of them in each panel of the depth.
            const bool ends = i + kTurned >= n;
            const std::int64_t from = ends ? j + deep : j, panels = std::min(kStripe, depth.end - from) / kPanelRows;
            Ahead ahead{b + packed_index(n, from, ends ? 0 : i + kTurned), n * kPanelRows, panels};
            const WideStrip strip{w.a, w.b, deep * kPanelRows, deep / 2};
            wide_.block(rows, columns, &strip, 1, part(t) + row * n + i, n,
                        j > depth.begin ? Store::accumulate : Store::write, &ahead);
          }
        }
    }
  });
  device_.pool.parallel_for(m * n, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = 1; t < threads; ++t) vector_kernels().add(end - begin, part(t) + begin, 1.0f, c + begin);
  });
}

}  // namespace mw::engine
