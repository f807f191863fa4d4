// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/paged_attention.h"

#include <algorithm>

namespace mw::engine {
namespace {

// The blocks of a row in one layer, for one KV head.
struct PagedHead {
  const float *k, *v;  // of block 0
  std::span<const int> blocks;
  std::int64_t block, dim;  // floats of a block; of a token
  int block_size;
  std::int64_t at(int position) const {
    return blocks[static_cast<size_t>(position / block_size)] * block + position % block_size * dim;
  }
  // Calls fn(first, count) for ranges of [begin, end) that are contiguous in memory, in order. Kernels add 16 products
  // in another order than fewer, so only whole blocks of a multiple of 16 tokens are joined: the bits do not depend on
  // which blocks are neighbours.
  template <class F>
  void pieces(int begin, int end, F fn) const {
    for (int next; begin < end; begin = next) {
      auto i = static_cast<size_t>(begin / block_size);
      next = (begin / block_size + 1) * block_size;
      const bool whole = begin % block_size == 0 && block_size % 16 == 0;
      for (; whole && next < end && blocks[i + 1] == blocks[i] + 1; ++i) next += block_size;
      next = std::min(end, next);
      fn(begin, next - begin);
    }
  }
};

// The query heads of one kv head, the token at `end - 1`, against keys [begin, end). p: [heads, keys]
void attend_token(const Transformer& net, const AttentionShape& shape, const PagedHead& h, int heads, int begin,
                  int end, const float* q, float* p, float* o) {
  const std::int64_t n = end - begin;
  h.pieces(begin, end, [&](int first, int count) {
    net.kernels.dot_rows(heads, n, shape.dim, shape.scale, q, h.k + h.at(first), 0.0f, p + (first - begin), 0, count);
  });
  if (shape.cap > 0) net.kernels.softcap(heads * n, shape.cap, p);
  for (int i = 0; i < heads; ++i) net.kernels.softmax(n, 0, n, p + i * n);
  h.pieces(begin, end, [&](int first, int count) {
    net.kernels.weigh_rows(heads, count, shape.dim, p + (first - begin), n, h.v + h.at(first),
                           first > begin ? 1.0f : 0.0f, o);
  });
}

struct Tile {
  float *keys, *queries, *out;
};

// Tokens at positions [first, end), all query heads of one kv head, as one block of queries. q and o: of the first.
void attend_chunk(Transformer& net, const AttentionShape& shape, const PagedHead& h, int heads, int first, int end,
                  const float* q, const Tile& tile, const ScoreBlocks& w, float* o) {
  const int begin = std::max(0, first - shape.window + 1);
  const std::int64_t n = end - begin, width = heads * shape.dim, rows = std::int64_t{end - first} * heads;
  for (int i = 0; i < end - first; ++i) std::copy_n(q + i * shape.q_stride, width, tile.queries + i * width);
  const auto tiles = [&](const float* from, auto fn) {
    for (int t = begin; t < end; t += PagedCache::kTileKeys) {
      const int last = std::min<int>(end, t + PagedCache::kTileKeys);
      h.pieces(t, last, [&](int at, int count) {
        std::copy_n(from + h.at(at), count * shape.dim, tile.keys + (at - t) * shape.dim);
      });
      fn(t - begin, last - t);
    }
  };
  tiles(h.k, [&](int at, int count) {
    net.gemm.block(w.thread, Operand::plain, Operand::transposed, rows, count, shape.dim, shape.scale, tile.queries,
                   shape.dim, tile.keys, shape.dim, 0.0f, w.s + at, n);
  });
  if (shape.cap > 0) net.kernels.softcap(rows * n, shape.cap, w.s);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto position = first + static_cast<int>(r / heads);
    net.kernels.softmax(n, std::max(begin, position - shape.window + 1) - begin, position + 1 - begin, w.s + r * n);
  }
  tiles(h.v, [&](int at, int count) {
    net.gemm.block(w.thread, Operand::plain, Operand::plain, rows, shape.dim, count, 1.0f, w.s + at, n, tile.keys,
                   shape.dim, at > 0 ? 1.0f : 0.0f, tile.out, shape.dim);
  });
  for (int i = 0; i < end - first; ++i) std::copy_n(tile.out + i * width, width, o + i * shape.q_stride);
}

// Copies keys and values of the step's tokens to their blocks; tokens without a block are behind the window already.
void store(Transformer& net, const AttentionShape& shape, const PassContext& pass, const PagedCache::Layer& layer,
           const float* k, const float* v) {
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

}  // namespace

void attend_paged(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values) {
  const float *const q = values.q, *const k = values.k, *const v = values.v;
  float* const o = values.o;
  const AttentionShape shape = attention_shape(net, layer);
  const PagedCache& cache = *pass.paged->cache;
  const PagedCache::Layer& at = cache.layers[static_cast<size_t>(layer)];
  if (net.config.layers[static_cast<size_t>(layer)].has_k) store(net, shape, pass, at, k, v);
  const int most_tokens = std::max(1, kQueries / shape.group);  // of a block of queries
  std::vector<TokenRun> fresh;
  std::vector<AttentionTask> tasks;
  double flops = 0;
  bool decodes = false;
  for (size_t i = 0; i < pass.tokens->runs.size(); ++i) {
    const TokenRun& run = pass.tokens->runs[i];
    const int first = pass.paged->rows[i].first, tokens = run.end - run.begin;
    if (first == 0 && tokens > 1) {
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
        constexpr double kTokenCost = 4;  // of an operation that waits for its key
        tasks.push_back({run, kv, run.begin + t, tokens == 1 ? kTokenCost * work : work, static_cast<int>(i)});
      }
  }
  std::int64_t keys = fresh.empty() ? 0 : pass.tokens->longest_run;
  if (decodes) keys = std::max(keys, decoded_keys(net.weights, static_cast<size_t>(layer), pass.paged->max_context));
  reserve_scores(net, keys);
  if (!fresh.empty()) attend_within(net, shape, fresh, values);
  if (tasks.empty()) return;
  const auto timer = net.profile.time(Kernel::attention, flops);
  const std::int64_t block = cache.block_size * shape.dim,
                     widest = cache.tile_floats / (PagedCache::kTileKeys + 2 * kQueries);
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    const PagedRow& row = pass.paged->rows[static_cast<size_t>(task.row)];
    const std::int64_t head = task.head * at.blocks * block;
    const PagedHead h{at.k + head, at.v + head, row.blocks[static_cast<size_t>(at.group)],
                      block,       shape.dim,   cache.block_size};
    const TokenSpan heads = shape.queries_of(task.head);
    if (heads.begin >= heads.end) return;
    const int tokens = std::min(most_tokens, task.run.end - task.query),
              first = row.first + task.query - task.run.begin;
    const std::int64_t from = task.query * shape.q_stride + heads.begin * shape.dim;
    if (task.run.end - task.run.begin == 1)
      return attend_token(net, shape, h, heads.end - heads.begin, std::max(0, first - shape.window + 1), first + 1,
                          q + from, w.s, o + from);
    float* const tile = cache.tiles.data() + cache.tile_floats * w.thread;
    attend_chunk(net, shape, h, heads.end - heads.begin, first, first + tokens, q + from,
                 {tile, tile + PagedCache::kTileKeys * widest, tile + (PagedCache::kTileKeys + kQueries) * widest}, w,
                 o + from);
  });
}

}  // namespace mw::engine
