// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/paged_decoder.h"

#include <algorithm>

#include "core/engine/transformer/loss.h"

namespace mw::engine {

PagedCache make_paged_cache(const Transformer& net, int block_size, const std::vector<BlockGroup>& groups,
                            ChunkTiles tiles) {
  const CacheLayout layout = lay_out_cache(net.weights, block_size, groups);
  PagedCache cache;
  cache.block_size = block_size;
  for (const Allocation& group : layout.groups) cache.groups.emplace_back(net.device.arena, group);
  for (const CacheLayout::Layer& layer : layout.layers) {
    const auto group = static_cast<size_t>(layer.group);
    float* const keys = cache.groups[group].data();
    cache.layers.push_back({layer.group, field_at(keys, layer.k), field_at(keys, layer.v), groups[group].blocks});
  }
  if (tiles == ChunkTiles::no) return cache;
  cache.tile_floats = key_tile_floats(net.weights);
  cache.tiles = DeviceBuffer<float>(net.device.arena, key_tiles(net.weights, net.device.pool.threads()));
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
  net.buffers.prepare(forward_shape(net.weights, tokens.count));
  std::vector<int> rows;
  for (size_t i = 0; i < step.chunks.size(); ++i)
    if (step.chunks[i].logits == TokenChunk::Logits::last) rows.push_back(last[i]);
  std::vector<int> outputs = rows;
  std::sort(outputs.begin(), outputs.end());
  const bool selects = can_select_outputs(net) && static_cast<int>(outputs.size()) < tokens.count;
  const float* x = forward(net, {.tokens = &tokens, .paged = &batch, .outputs = selects ? &outputs : nullptr});
  if (selects)
    for (int& row : rows)
      row = static_cast<int>(std::lower_bound(outputs.begin(), outputs.end(), row) - outputs.begin());
  float* logits = net.buffers.logit_rows(step.logit_rows);
  gather_weights(net, ShardedStorage::kHead, mesh::Phase::forward);
  if (!rows.empty()) head_logits(net, x, rows, logits);
  return {logits, rows.size() * static_cast<size_t>(net.config.vocab)};
}

SequenceDecoder::SequenceDecoder(Transformer& net, std::span<const int> tokens) : net_(net), rows_(tokens.size()) {
  std::vector<BlockGroup> groups = sequence_groups(net.weights);
  for (size_t r = 0; r < rows_.size(); ++r) {
    max_context_ = std::max(max_context_, tokens[r]);
    for (int g = 0; g < kSequenceGroups; ++g) {
      std::int64_t& blocks = groups[static_cast<size_t>(g)].blocks;
      rows_[r].first[g] = static_cast<int>(blocks);
      rows_[r].count[g] = static_cast<int>(sequence_blocks(net.weights, g, tokens[r]));
      blocks += rows_[r].count[g];
    }
  }
  cache_ = make_paged_cache(net, static_cast<int>(sizes::kSamplerBlock), groups, ChunkTiles::no);
}

// Blocks for `tokens` more tokens. The blocks of a window are reused in turn.
void SequenceDecoder::extend(Row& row, int tokens) {
  row.length += tokens;
  for (int g = 0; g < kSequenceGroups; ++g) {
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
