// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/paged_attention.h"

#include <algorithm>

namespace mw::engine {
namespace {

// The cached keys and values of a row, for one layer and KV head.
struct PagedHead {
  const float *k, *v;  // of block 0
  std::span<const int> blocks;
  std::int64_t block_floats, dim;
  int block_size, query_heads;
  std::int64_t offset_of(int position) const {
    return blocks[static_cast<size_t>(position / block_size)] * block_floats + position % block_size * dim;
  }
  // Calls fn(first, count) for ranges of the positions that are contiguous in memory, in order. Kernels add 16 products
  // in another order than fewer, so only whole blocks of a multiple of 16 tokens are joined: the bits do not depend on
  // which blocks are neighbours.
  template <class F>
  void for_each_contiguous(TokenSpan positions, F fn) const {
    int next = 0;
    for (int begin = positions.begin; begin < positions.end; begin = next) {
      auto i = static_cast<size_t>(begin / block_size);
      next = (begin / block_size + 1) * block_size;
      const bool whole = begin % block_size == 0 && block_size % 16 == 0;
      for (; whole && next < positions.end && blocks[i + 1] == blocks[i] + 1; ++i) next += block_size;
      next = std::min(positions.end, next);
      fn(begin, next - begin);
    }
  }
};

struct HeadRows {  // of the first token, from the first query head of the KV head on
  const float* q;
  float* o;
};

// One token, the last of `keys`, and all query heads of a KV head. p: [query_heads, keys]
void attend_token(const Transformer& net, const AttentionShape& shape, const PagedHead& head, TokenSpan keys,
                  HeadRows rows, float* p) {
  const std::int64_t n = keys.size(), heads = head.query_heads, dim = shape.dim;
  head.for_each_contiguous(keys, [&](int first, int count) {
    net.kernels.dot_rows({heads, n, dim}, rows.q, head.k + head.offset_of(first), p + (first - keys.begin),
                         {.alpha = shape.scale}, {0, count});
  });
  if (shape.cap > 0) net.kernels.softcap(heads * n, shape.cap, p);
  for (std::int64_t i = 0; i < heads; ++i) net.kernels.softmax(n, 0, n, p + i * n);
  head.for_each_contiguous(keys, [&](int first, int count) {
    net.kernels.weighted_sums({heads, dim, count}, {p + (first - keys.begin), n}, head.v + head.offset_of(first),
                              rows.o, first > keys.begin ? StoreMode::accumulate : StoreMode::write);
  });
}

// The last token of a run and all query heads of a KV head, against the keys and values in the run's own pass.
void attend_last_of_run(Transformer& net, const AttentionShape& shape, const AttentionTask& task, HeadRows rows,
                        const AttentionValues& values, const ScoreBlocks& w) {
  const int begin = std::max(task.run.begin, task.run.end - shape.window);
  const std::int64_t n = task.run.end - begin, heads = shape.queries_of(task.head).size(), dim = shape.dim,
                     first = begin * shape.kv_stride + task.head * dim;
  net.gemm.block(w.thread, {heads, n, dim}, {rows.q, dim}, {{values.k + first, shape.kv_stride, Transpose::yes}},
                 {w.s, n}, {.alpha = shape.scale});
  if (shape.cap > 0) net.kernels.softcap(heads * n, shape.cap, w.s);
  for (std::int64_t i = 0; i < heads; ++i) net.kernels.softmax(n, 0, n, w.s + i * n);
  net.gemm.block(w.thread, {heads, dim, n}, {w.s, n}, {{values.v + first, shape.kv_stride}}, {rows.o, dim});
}

struct ChunkBuffers {
  float *keys, *queries, *out;  // keys: later the values
  ScoreBlocks scores;
};

// The tokens at some positions and all query heads of a KV head, as one block of queries.
void attend_chunk(Transformer& net, const AttentionShape& shape, const PagedHead& head, TokenSpan positions,
                  HeadRows rows, const ChunkBuffers& buffers) {
  const TokenSpan keys{std::max(0, positions.begin - shape.window + 1), positions.end};
  const std::int64_t n = keys.size(), heads = head.query_heads, dim = shape.dim, width = heads * dim,
                     queries = positions.size() * heads, thread = buffers.scores.thread;
  float* const s = buffers.scores.s;
  for (int i = 0; i < positions.size(); ++i)
    std::copy_n(rows.q + i * shape.q_stride, width, buffers.queries + i * width);
  const auto for_each_tile = [&](const float* cached, auto fn) {  // fn(first key of the tile, keys of the tile)
    for (int t = keys.begin; t < keys.end; t += PagedCache::kTileKeys) {
      const TokenSpan tile{t, std::min<int>(keys.end, t + PagedCache::kTileKeys)};
      head.for_each_contiguous(tile, [&](int first, int count) {
        std::copy_n(cached + head.offset_of(first), count * dim, buffers.keys + (first - t) * dim);
      });
      fn(t - keys.begin, tile.size());
    }
  };
  for_each_tile(head.k, [&](int first, int count) {
    net.gemm.block(thread, {queries, count, dim}, {buffers.queries, dim}, {{buffers.keys, dim, Transpose::yes}},
                   {s + first, n}, {.alpha = shape.scale});
  });
  if (shape.cap > 0) net.kernels.softcap(queries * n, shape.cap, s);
  for (std::int64_t r = 0; r < queries; ++r) {
    const auto position = positions.begin + static_cast<int>(r / heads);
    const int first = std::max(keys.begin, position - shape.window + 1) - keys.begin;
    net.kernels.softmax(n, first, position + 1 - keys.begin, s + r * n);
  }
  for_each_tile(head.v, [&](int first, int count) {
    net.gemm.block(thread, {queries, dim, count}, {s + first, n}, {{buffers.keys, dim}}, {buffers.out, dim},
                   {.beta = first > 0 ? 1.0f : 0.0f});
  });
  for (int i = 0; i < positions.size(); ++i) std::copy_n(buffers.out + i * width, width, rows.o + i * shape.q_stride);
}

// Copies keys and values of the step's tokens to their blocks. Tokens without a block are already outside the window.
void write_to_cache(Transformer& net, const AttentionShape& shape, const PassContext& pass,
                    const PagedCache::Layer& layer, const float* k, const float* v) {
  constexpr std::int64_t kFloats = 1 << 15;  // a thread copies at least this many
  const PagedCache& cache = *pass.paged->cache;
  const auto copy = [&](const TokenRun& run, const PagedRow& row, std::int64_t token) {
    const int position = row.first + static_cast<int>(token) - run.begin;
    const int block = row.blocks[static_cast<size_t>(layer.group)][static_cast<size_t>(position / cache.block_size)];
    if (block < 0) return;
    for (int h = 0; h < shape.kv_heads; ++h) {
      const std::int64_t from = token * shape.kv_stride + h * shape.dim;
      const std::int64_t to = ((h * layer.blocks + block) * cache.block_size + position % cache.block_size) * shape.dim;
      std::copy_n(k + from, shape.dim, layer.k + to);
      std::copy_n(v + from, shape.dim, layer.v + to);
    }
  };
  const std::int64_t grain = std::max<std::int64_t>(1, kFloats / (2 * shape.kv_stride));
  net.device.pool.parallel_for(pass.tokens->count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (size_t i = 0; i < pass.tokens->runs.size(); ++i) {
      const TokenRun& run = pass.tokens->runs[i];
      for (std::int64_t t = std::max<std::int64_t>(begin, run.begin); t < std::min<std::int64_t>(end, run.end); ++t)
        copy(run, pass.paged->rows[i], t);
    }
  });
}

// Whether the run attends within itself: all of its keys are in this pass.
bool is_fresh(const PagedRow& row, const TokenRun& run) {
  return row.first == 0 && run.end - run.begin > 1;
}

PagedHead paged_head(const AttentionShape& shape, const PagedBatch& batch, const PagedCache::Layer& layer,
                     const AttentionTask& task) {
  const PagedCache& cache = *batch.cache;
  const std::int64_t block_floats = cache.block_size * shape.dim, of_head = task.head * layer.blocks * block_floats;
  return {.k = layer.k + of_head,
          .v = layer.v + of_head,
          .blocks = batch.rows[static_cast<size_t>(task.row)].blocks[static_cast<size_t>(layer.group)],
          .block_floats = block_floats,
          .dim = shape.dim,
          .block_size = cache.block_size,
          .query_heads = shape.queries_of(task.head).size()};
}

constexpr double kTokenCost = 4;  // relative cost of an operation when one token reads the keys from memory

}  // namespace

void attend_paged(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values) {
  const AttentionShape shape = attention_shape(net, layer);
  const PagedCache& cache = *pass.paged->cache;
  const PagedCache::Layer& cached = cache.layers[static_cast<size_t>(layer)];
  if (net.config.layers[static_cast<size_t>(layer)].has_k) write_to_cache(net, shape, pass, cached, values.k, values.v);
  const int most_tokens = std::max(1, kQueries / shape.group);  // of a block of queries
  std::vector<TokenRun> fresh;                                  // runs without cached tokens
  std::vector<AttentionTask> tasks;
  double flops = 0;
  bool decodes = false;
  for (size_t i = 0; i < pass.tokens->runs.size(); ++i) {
    const TokenRun& run = pass.tokens->runs[i];
    const int first = pass.paged->rows[i].first, tokens = run.end - run.begin;
    if (is_fresh(pass.paged->rows[i], run)) {
      fresh.push_back(run);
      continue;
    }
    decodes = decodes || tokens == 1;
    for (int kv = 0; kv < shape.kv_heads; ++kv)
      for (int t = 0; t < tokens; t += most_tokens) {
        const int some = std::min(most_tokens, tokens - t);
        const auto keys = std::min<std::int64_t>(first + t + some, std::int64_t{shape.window} + some - 1);
        const double work = 4.0 * static_cast<double>(some * shape.group * keys * shape.dim);
        flops += work;
        tasks.push_back({run, kv, run.begin + t, tokens == 1 ? kTokenCost * work : work, static_cast<int>(i)});
      }
  }
  std::int64_t keys = fresh.empty() ? 0 : pass.tokens->longest_run;
  if (decodes) keys = std::max(keys, decoded_keys(net.weights, static_cast<size_t>(layer), pass.paged->max_context));
  reserve_score_blocks(net, keys);
  if (!fresh.empty()) attend_within(net, shape, fresh, values);
  if (tasks.empty()) return;
  const auto timer = net.profile.time(Kernel::attention, flops);
  const std::int64_t widest = cache.tile_floats / (PagedCache::kTileKeys + 2 * kQueries);
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    const TokenSpan heads = shape.queries_of(task.head);
    if (heads.size() <= 0) return;
    const PagedRow& row = pass.paged->rows[static_cast<size_t>(task.row)];
    const PagedHead head = paged_head(shape, *pass.paged, cached, task);
    const int first = row.first + task.query - task.run.begin;
    const std::int64_t from = task.query * shape.q_stride + heads.begin * shape.dim;
    const HeadRows rows{values.q + from, values.o + from};
    if (task.run.end - task.run.begin == 1)
      return attend_token(net, shape, head, {std::max(0, first - shape.window + 1), first + 1}, rows, w.s);
    float* const tile = cache.tiles.data() + cache.tile_floats * w.thread;
    float* const queries = tile + PagedCache::kTileKeys * widest;
    attend_chunk(net, shape, head, {first, first + std::min(most_tokens, task.run.end - task.query)}, rows,
                 {tile, queries, queries + kQueries * widest, w});
  });
}

void attend_outputs(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values) {
  const AttentionShape shape = attention_shape(net, layer);
  const PagedBatch& batch = *pass.paged;
  const PagedCache::Layer& cached = batch.cache->layers[static_cast<size_t>(layer)];
  if (net.config.layers[static_cast<size_t>(layer)].has_k) write_to_cache(net, shape, pass, cached, values.k, values.v);
  std::vector<AttentionTask> tasks;
  double flops = 0;
  bool reads_cache = false;
  size_t run = 0;
  for (size_t i = 0; i < pass.outputs->size(); ++i) {
    while (pass.tokens->runs[run].end <= (*pass.outputs)[i]) ++run;
    const TokenRun& of = pass.tokens->runs[run];
    const std::int64_t seen = std::min<std::int64_t>(batch.rows[run].first + of.end - of.begin, shape.window);
    const double work = 4.0 * static_cast<double>(shape.group * seen * shape.dim);
    reads_cache = reads_cache || !is_fresh(batch.rows[run], of);
    for (int kv = 0; kv < shape.kv_heads; ++kv)
      tasks.push_back({of, kv, static_cast<int>(i), work, static_cast<int>(run)}), flops += work;
  }
  if (tasks.empty()) return;
  std::int64_t keys = pass.tokens->longest_run;
  if (reads_cache) keys = std::max(keys, decoded_keys(net.weights, static_cast<size_t>(layer), batch.max_context));
  reserve_score_blocks(net, keys);
  const auto timer = net.profile.time(Kernel::attention, flops);
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    const TokenSpan heads = shape.queries_of(task.head);
    if (heads.size() <= 0) return;
    const std::int64_t from = task.query * shape.q_stride + heads.begin * shape.dim;
    const HeadRows rows{values.q + from, values.o + from};
    const PagedRow& row = batch.rows[static_cast<size_t>(task.row)];
    if (is_fresh(row, task.run)) return attend_last_of_run(net, shape, task, rows, values, w);
    const int position = row.first + task.run.end - task.run.begin - 1;
    attend_token(net, shape, paged_head(shape, batch, cached, task),
                 {std::max(0, position - shape.window + 1), position + 1}, rows, w.s);
  });
}

}  // namespace mw::engine
