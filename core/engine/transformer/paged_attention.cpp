// SPDX-License-Identifier: Apache-2.0
// Attention of a server's step: rows that decode and chunks of prompts against a cache in blocks. Every key of the step
// is written before any is read, so a block may be shared in the very step that fills it.
#include <algorithm>

#include "core/engine/transformer/attention_parts.h"
#include "core/engine/transformer/paged_batch.h"

namespace mw::engine {
namespace {

// A kv head of a row's blocks in one layer.
struct PagedHead {
  const float *k, *v;  // of block 0
  std::span<const int> blocks;
  std::int64_t block, dim;  // floats of a block; of a token
  int block_size;
  std::int64_t at(int position) const {
    return blocks[static_cast<size_t>(position / block_size)] * block + position % block_size * dim;
  }
  // fn(first, count): tokens that lie side by side, of [begin, end) in order. Kernels add 16 products another way than
  // fewer, so only whole blocks of a multiple of that are joined: bits do not depend on which blocks are neighbours.
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
void attend_token(const Core& core, const AttentionShape& s, const PagedHead& h, int heads, int begin, int end,
                  const float* q, float* p, float* o) {
  const std::int64_t n = end - begin;
  h.pieces(begin, end, [&](int first, int count) {
    core.kernels.dot_rows(heads, n, s.dim, s.scale, q, h.k + h.at(first), 0.0f, p + (first - begin), 0, count);
  });
  if (s.cap > 0) core.kernels.softcap(heads * n, s.cap, p);
  for (int i = 0; i < heads; ++i) core.kernels.softmax(n, 0, n, p + i * n);
  h.pieces(begin, end, [&](int first, int count) {
    core.kernels.weigh_rows(heads, count, s.dim, p + (first - begin), n, h.v + h.at(first), first > begin ? 1.0f : 0.0f,
                            o);
  });
}

struct Tile {
  float *keys, *queries, *out;
};

// Tokens at positions [first, end), all query heads of one kv head, as one block of queries. q and o: of the first.
void attend_chunk(Core& core, const AttentionShape& s, const PagedHead& h, int heads, int first, int end,
                  const float* q, const Tile& tile, const ScoreBlocks& w, float* o) {
  const int begin = std::max(0, first - s.window + 1);
  const std::int64_t n = end - begin, width = heads * s.dim, rows = std::int64_t{end - first} * heads;
  for (int i = 0; i < end - first; ++i) std::copy_n(q + i * s.q_stride, width, tile.queries + i * width);
  const auto tiles = [&](const float* from, auto fn) {
    for (int t = begin; t < end; t += PagedCache::kTileKeys) {
      const int last = std::min<int>(end, t + PagedCache::kTileKeys);
      h.pieces(t, last,
               [&](int at, int count) { std::copy_n(from + h.at(at), count * s.dim, tile.keys + (at - t) * s.dim); });
      fn(t - begin, last - t);
    }
  };
  tiles(h.k, [&](int at, int count) {
    core.gemm.block(w.thread, Operand::plain, Operand::transposed, rows, count, s.dim, s.scale, tile.queries, s.dim,
                    tile.keys, s.dim, 0.0f, w.s + at, n);
  });
  if (s.cap > 0) core.kernels.softcap(rows * n, s.cap, w.s);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto position = first + static_cast<int>(r / heads);
    core.kernels.softmax(n, std::max(begin, position - s.window + 1) - begin, position + 1 - begin, w.s + r * n);
  }
  tiles(h.v, [&](int at, int count) {
    core.gemm.block(w.thread, Operand::plain, Operand::plain, rows, s.dim, count, 1.0f, w.s + at, n, tile.keys, s.dim,
                    at > 0 ? 1.0f : 0.0f, tile.out, s.dim);
  });
  for (int i = 0; i < end - first; ++i) std::copy_n(tile.out + i * width, width, o + i * s.q_stride);
}

// Keys and values of the step's tokens to their blocks; those without one fall behind the window at once.
void store(Core& core, const AttentionShape& s, const Pass& pass, const PagedCache::Layer& layer, const float* k,
           const float* v) {
  constexpr std::int64_t kFloats = 1 << 15;  // that a thread copies at least
  const PagedCache& cache = *pass.served->cache;
  const auto copy = [&](const Run& run, const PagedRow& row, std::int64_t token) {
    const int position = row.first + static_cast<int>(token) - run.begin;
    const int block = row.blocks[static_cast<size_t>(layer.group)][static_cast<size_t>(position / cache.block_size)];
    if (block < 0) return;
    for (int h = 0; h < s.kv_heads; ++h) {
      const std::int64_t from = token * s.kv_stride + h * s.dim;
      const std::int64_t to = ((h * layer.blocks + block) * cache.block_size + position % cache.block_size) * s.dim;
      std::copy_n(k + from, s.dim, layer.k + to);
      std::copy_n(v + from, s.dim, layer.v + to);
    }
  };
  const std::int64_t grain = std::max<std::int64_t>(1, kFloats / (2 * s.kv_stride));
  core.device.pool.parallel_for(pass.tokens->count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (size_t i = 0; i < pass.tokens->runs.size(); ++i) {
      const Run& run = pass.tokens->runs[i];
      for (std::int64_t t = std::max<std::int64_t>(begin, run.begin); t < std::min<std::int64_t>(end, run.end); ++t)
        copy(run, pass.served->rows[i], t);
    }
  });
}

}  // namespace

// A prompt from its beginning attends within itself, as everywhere. Other chunks go block by block of queries, whose
// keys are laid side by side a tile at a time; single tokens read the cache as it lies.
void Core::attention_served(const Pass& pass, int layer, const float* q, const float* k, const float* v, float* o,
                            float* lse) {
  const AttentionShape s = attention_shape(*this, layer);
  const PagedCache& cache = *pass.served->cache;
  const PagedCache::Layer& at = cache.layers[static_cast<size_t>(layer)];
  if (config.layers[static_cast<size_t>(layer)].has_k) store(*this, s, pass, at, k, v);
  const int most_tokens = std::max(1, kQueries / s.group);  // of a block of queries
  std::vector<Run> fresh;
  std::vector<AttentionTask> tasks;
  double flops = 0;
  for (size_t i = 0; i < pass.tokens->runs.size(); ++i) {
    const Run& run = pass.tokens->runs[i];
    const int first = pass.served->rows[i].first, tokens = run.end - run.begin;
    if (first == 0 && tokens > 1) {
      fresh.push_back(run);
      continue;
    }
    for (int kv = 0; kv < s.kv_heads; ++kv)
      for (int t = 0; t < tokens; t += most_tokens) {
        const int some = std::min(most_tokens, tokens - t);
        const auto keys = std::min<std::int64_t>(first + t + some, std::int64_t{s.window} + some - 1);
        const double work = 4.0 * static_cast<double>(some * s.group * keys * s.dim);
        flops += work;
        constexpr double kTokenCost = 4;  // of an operation that waits for its key
        tasks.push_back({run, kv, run.begin + t, tokens == 1 ? kTokenCost * work : work, static_cast<int>(i)});
      }
  }
  if (!fresh.empty()) attend_within(*this, s, fresh, q, k, v, o, lse);
  if (tasks.empty()) return;
  const auto timer = profile.time(Kernel::attention, flops);
  const std::int64_t block = cache.block_size * s.dim,
                     widest = cache.tile_floats / (PagedCache::kTileKeys + 2 * kQueries);
  run_tasks(*this, tasks, [&](const AttentionTask& t, const ScoreBlocks& w) {
    const PagedRow& row = pass.served->rows[static_cast<size_t>(t.row)];
    const std::int64_t head = t.head * at.blocks * block;
    const PagedHead h{at.k + head, at.v + head, row.blocks[static_cast<size_t>(at.group)],
                      block,       s.dim,       cache.block_size};
    const Span heads = s.queries_of(t.head);
    const int tokens = std::min(most_tokens, t.run.end - t.query), first = row.first + t.query - t.run.begin;
    const std::int64_t from = t.query * s.q_stride + heads.begin * s.dim;
    if (t.run.end - t.run.begin == 1)
      return attend_token(*this, s, h, heads.end - heads.begin, std::max(0, first - s.window + 1), first + 1, q + from,
                          w.s, o + from);
    float* const tile = cache.tiles.data() + cache.tile_floats * w.thread;
    attend_chunk(*this, s, h, heads.end - heads.begin, first, first + tokens, q + from,
                 {tile, tile + PagedCache::kTileKeys * widest, tile + (PagedCache::kTileKeys + kQueries) * widest}, w,
                 o + from);
  });
}

}  // namespace mw::engine
