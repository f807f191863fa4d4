// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/paged_decoder.h"

#include <algorithm>

#include "core/engine/transformer/loss.h"

namespace mw::engine {

PagedCache make_paged_cache(const Transformer& net, int block_size, std::span<const BlockGroup> groups,
                            ChunkTiles tiles) {
  PagedCache cache;
  cache.block_size = block_size;
  cache.layers.resize(net.config.layers.size());
  const auto floats_of = [&](const BlockGroup& group, int layer) {  // keys of a layer
    const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
    return std::int64_t{group.blocks} * block_size * l.kv_heads * l.head_dim;
  };
  for (size_t g = 0; g < groups.size(); ++g) {
    std::int64_t floats = 0;
    for (const int layer : groups[g].layers) floats += 2 * floats_of(groups[g], layer);
    cache.groups.emplace_back(net.device.arena, MemoryCategory::kv_cache, static_cast<size_t>(floats), "KV blocks");
    float* next = cache.groups.back().data();
    for (const int layer : groups[g].layers) {
      const std::int64_t of_layer = floats_of(groups[g], layer);
      cache.layers[static_cast<size_t>(layer)] = {static_cast<int>(g), next, next + of_layer, groups[g].blocks};
      next += 2 * of_layer;
    }
  }
  int widest = 0;
  for (size_t i = 0; i < net.config.layers.size(); ++i) {
    const model::Layer& l = net.config.layers[i];
    if (l.kv_donor >= 0) cache.layers[i] = cache.layers[static_cast<size_t>(l.kv_donor)];
    widest = std::max(widest, l.head_dim);
  }
  if (tiles == ChunkTiles::no) return cache;
  cache.tile_floats = (PagedCache::kTileKeys + 2 * kQueries) * widest;
  cache.tiles = Buffer<float>(net.device.arena, MemoryCategory::workspace,
                              static_cast<size_t>(cache.tile_floats * net.device.pool.threads()), "tiles of keys");
  return cache;
}

std::span<float> compute_step(Transformer& net, const PagedStep& step) {
  std::vector<size_t> order(step.chunks.size());  // tokens of one adapter are neighbours
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return step.chunks[a].adapter < step.chunks[b].adapter; });
  Tokens tokens;
  PagedBatch batch{.cache = step.cache,
                   .rows = {},
                   .max_context = step.max_context,
                   .adapted = {},
                   .low_rank = step.low_rank,
                   .max_rank = step.max_rank};
  std::vector<int> last(step.chunks.size());
  for (const size_t i : order) {
    const TokenChunk& chunk = step.chunks[i];
    const int begin = tokens.count;
    tokens.count += static_cast<int>(chunk.ids.size());
    tokens.ids.insert(tokens.ids.end(), chunk.ids.begin(), chunk.ids.end());
    for (int token = begin; token < tokens.count; ++token) tokens.positions.push_back(chunk.first + token - begin);
    tokens.runs.push_back({begin, tokens.count});
    tokens.longest_run = std::max(tokens.longest_run, tokens.count - begin);
    tokens.last_position = std::max(tokens.last_position, tokens.positions.back());
    batch.rows.push_back({chunk.first, chunk.blocks});
    last[i] = tokens.count - 1;
    if (chunk.adapter < 0) continue;
    const AdapterSet* const adapter = &step.adapters[static_cast<size_t>(chunk.adapter)];
    if (batch.adapted.empty() || batch.adapted.back().adapter != adapter)
      batch.adapted.push_back({begin, tokens.count, adapter});
    batch.adapted.back().end = tokens.count;
  }
  tokens.origin = tokens.positions;
  net.buffers.prepare({.tokens = tokens.count, .lowest = static_cast<int>(net.weights.layers.size())});
  const float* x = forward(net, {.tokens = &tokens, .paged = &batch});
  std::vector<int> rows;
  for (size_t i = 0; i < step.chunks.size(); ++i)
    if (step.chunks[i].logits == TokenChunk::Logits::last) rows.push_back(last[i]);
  float* logits = net.buffers.logit_rows(step.logit_rows);
  gather_weights(net, ShardedStorage::kHead, mesh::Phase::forward);
  if (!rows.empty()) head_logits(net, x, rows, logits);
  return {logits, rows.size() * static_cast<size_t>(net.config.vocab)};
}

SequenceDecoder::SequenceDecoder(Transformer& net, std::span<const int> tokens) : net_(net), rows_(tokens.size()) {
  BlockGroup groups[kGroups];
  for (size_t layer = 0; layer < net.config.layers.size(); ++layer) {
    const model::Layer& l = net.config.layers[layer];
    const bool sliding = l.attention == model::Attention::sliding && net.config.sliding_window > 0;
    if (l.has_k) groups[sliding ? 1 : 0].layers.push_back(static_cast<int>(layer));
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    max_context_ = std::max(max_context_, tokens[r]);
    for (int g = 0; g < kGroups; ++g) {
      rows_[r].first[g] = groups[g].blocks;
      rows_[r].count[g] = static_cast<int>(sizes::sampler_blocks(tokens[r], g == 1 ? net.config.sliding_window : 0));
      groups[g].blocks += rows_[r].count[g];
    }
  }
  cache_ = make_paged_cache(net, static_cast<int>(sizes::kSamplerBlock), groups, ChunkTiles::no);
}

// Blocks for `tokens` more tokens. The blocks of a window are reused in turn.
void SequenceDecoder::extend(Row& row, int tokens) {
  row.length += tokens;
  for (int g = 0; g < kGroups; ++g) {
    std::vector<int>& blocks = row.blocks[g];
    while (static_cast<int>(blocks.size()) * cache_.block_size < row.length) {
      const int index = static_cast<int>(blocks.size());
      blocks.push_back(row.first[g] + index % row.count[g]);
      if (index >= row.count[g]) blocks[static_cast<size_t>(index - row.count[g])] = -1;
    }
    row.spans[g] = blocks;
  }
}

std::span<float> SequenceDecoder::advance(std::span<const Continuation> continuations) {
  std::vector<TokenChunk> chunks;
  for (const Continuation& next : continuations) {
    Row& row = rows_[static_cast<size_t>(next.row)];
    const int first = row.length;
    extend(row, static_cast<int>(next.ids.size()));
    chunks.push_back({.ids = next.ids, .first = first, .blocks = row.spans});
  }
  // Logits of all rows, so that the buffer is kept while rows end.
  return compute_step(net_, {.chunks = chunks,
                             .cache = &cache_,
                             .adapters = {},
                             .max_context = max_context_,
                             .logit_rows = static_cast<int>(rows_.size())});
}

}  // namespace mw::engine
