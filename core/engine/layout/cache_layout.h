// SPDX-License-Identifier: Apache-2.0
// KV caches in blocks, and what serving and scoring hold besides. Plain values; any thread.
#pragma once
#include <array>
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

struct BlockGroup {         // layers with keys of their own that use the same blocks
  std::vector<int> layers;  // of the model
  std::int64_t blocks = 0;
};

struct CacheLayout {
  struct Layer {  // a layer without keys of its own: those of its donor
    int group = 0;
    BufferField k, v;  // in the allocation of the group, [kv_heads, blocks, block_size, head_dim]
  };
  std::vector<Allocation> groups;
  std::vector<Layer> layers;
};
CacheLayout lay_out_cache(const ModelShape& model, int block_size, const std::vector<BlockGroup>& groups);

// The cache of sequences that are sampled: the layers with full attention, and those with a window, without blocks.
inline constexpr int kSequenceGroups = 2;
std::vector<BlockGroup> sequence_groups(const ModelShape& model);
// Blocks of sizes::kSamplerBlock tokens in a group that a sequence needs: all, or those that the window overlaps.
std::int64_t sequence_blocks(const ModelShape& model, int group, std::int64_t tokens);

// For chunks of several tokens that continue a row, for every thread: keys or values that a block of queries reads,
// [kTileKeys, head_dim], the queries and the outputs.
inline std::int64_t key_tile_floats(const ModelShape& model) {
  return (sizes::kTileKeys + 2 * sizes::kQueries) * model.widest_head();
}
inline Allocation key_tiles(const ModelShape& model, int threads) {
  return float_allocation(MemoryCategory::workspace, "tiles of keys", key_tile_floats(model) * threads);
}
// A x of up to three projections, [3, tokens, rank], of the adapters that are served.
constexpr Allocation adapter_products(std::int64_t tokens, std::int64_t rank) {
  return float_allocation(MemoryCategory::activations, "adapters' products", 3 * tokens * rank);
}

// Results of scoring: log-probabilities of the targets, the `k` likeliest tokens and their log-probabilities.
constexpr std::array<Allocation, 3> score_results(std::int64_t cells, std::int64_t k) {
  return {float_allocation(MemoryCategory::logits, "log-probabilities", cells),
          float_allocation(MemoryCategory::logits, "likeliest tokens", cells * k),
          float_allocation(MemoryCategory::logits, "their log-probabilities", cells * k)};
}

}  // namespace mw::engine
