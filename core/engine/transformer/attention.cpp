// SPDX-License-Identifier: Apache-2.0
// Causal attention over runs, 64 queries at a time against the keys they can see: no [tokens, tokens] matrix, and
// nothing is computed for keys left of the window or in another run.
#include "core/engine/transformer/attention_parts.h"

#include <algorithm>

namespace mw::engine {

std::vector<size_t> cut_by_cost(const std::vector<AttentionTask>& tasks, int threads) {
  double total = 0;
  for (const AttentionTask& t : tasks) total += t.cost;
  std::vector<size_t> cuts{0};
  double sum = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    while (static_cast<int>(cuts.size()) < threads &&
           sum + tasks[i].cost / 2 > total * static_cast<double>(cuts.size()) / threads)
      cuts.push_back(i);
    sum += tasks[i].cost;
  }
  cuts.resize(static_cast<size_t>(threads) + 1, tasks.size());
  return cuts;
}

AttentionShape attention_shape(const Core& core, int layer) {
  const model::Layer& l = core.config.layers[static_cast<size_t>(layer)];
  const mesh::LocalLayer* part = core.part ? &core.part->local().layers[static_cast<size_t>(layer)] : nullptr;
  return {.q_stride = std::int64_t{l.heads} * l.head_dim,
          .kv_stride = std::int64_t{l.kv_heads} * l.head_dim,
          .dim = l.head_dim,
          .window = l.attention == model::Attention::sliding && core.config.sliding_window > 0
                        ? core.config.sliding_window
                        : 1 << 30,
          .heads = l.heads,
          .kv_heads = l.kv_heads,
          .group = part ? part->group : l.heads / l.kv_heads,
          .skipped = part ? static_cast<int>(part->heads.begin - part->kv_heads.begin * part->group) : 0,
          .scale = core.config.attention_scale,
          .cap = core.config.attention_softcap};
}

namespace {

using Shape = AttentionShape;
using Task = AttentionTask;

// Keys that queries [begin, end) of the run see.
Span keys_of(const Run& run, int begin, int end, int window) {
  return {std::max(run.begin, begin - window + 1), end};
}

// Within a block's keys, those of query i.
Span visible(const Run& run, int i, const Span& keys, int window) {
  return {std::max(run.begin, i - window + 1) - keys.begin, i + 1 - keys.begin};
}

double block_flops(const Span& keys, int queries, std::int64_t dim) {
  return 4.0 * queries * (keys.end - keys.begin) * static_cast<double>(dim);
}

std::int64_t blocks_of(const Core& core) {
  return sizes::score_blocks(core.config.attention_softcap);
}

}  // namespace

void reserve_scores(Core& core, std::int64_t keys) {
  core.gemm.prepare_blocks();
  if (keys <= core.attention_block_keys) return;
  core.attention_workspace = {};
  core.attention_block_keys = 0;
  keys = sizes::round_up(keys, kQueries);
  core.attention_workspace = Buffer<float>(
      core.device.arena, MemoryCategory::workspace,
      static_cast<size_t>(blocks_of(core) * kQueries * keys * core.device.pool.threads()), "attention blocks");
  core.attention_block_keys = keys;
}

ScoreBlocks scores_of(const Core& core, std::int64_t thread) {
  const std::int64_t block = kQueries * core.attention_block_keys;
  float* base = core.attention_workspace.data() + blocks_of(core) * block * thread;
  return {thread, base, base + block, base + 2 * block};
}

namespace {

struct Head {  // pointers to head columns of token 0
  const float *q, *k, *v;
};

Head head_at(const Shape& s, const float* q, const float* k, const float* v, int head) {
  const std::int64_t kv = s.kv_of(head) * s.dim;
  return {q + head * s.dim, k + kv, v + kv};
}

void scores(Core& core, const Shape& s, const Head& h, int query, int queries, const Span& keys, const ScoreBlocks& w) {
  const std::int64_t n = keys.end - keys.begin;
  core.gemm.block(w.thread, Operand::plain, Operand::transposed, queries, n, s.dim, s.scale, h.q + query * s.q_stride,
                  s.q_stride, h.k + keys.begin * s.kv_stride, s.kv_stride, 0.0f, w.s, n);
  if (s.cap > 0) core.kernels.softcap(queries * n, s.cap, w.s);
}

}  // namespace

void attend_within(Core& core, const AttentionShape& s, std::span<const Run> runs, const float* q, const float* k,
                   const float* v, float* o, float* lse) {
  std::vector<Task> tasks;
  double flops = 0;
  for (const Run& run : runs)
    for (int head = 0; head < s.heads; ++head)
      for (int query = run.begin; query < run.end; query += kQueries) {
        const int end = std::min(run.end, query + kQueries);
        tasks.push_back({run, head, query, block_flops(keys_of(run, query, end, s.window), end - query, s.dim)});
        flops += tasks.back().cost;
      }
  const auto timer = core.profile.time(Kernel::attention, flops);
  run_tasks(core, tasks, [&](const Task& t, const ScoreBlocks& w) {
    const int end = std::min(t.run.end, t.query + kQueries), queries = end - t.query;
    const Span keys = keys_of(t.run, t.query, end, s.window);
    const std::int64_t n = keys.end - keys.begin;
    const Head h = head_at(s, q, k, v, t.head);
    scores(core, s, h, t.query, queries, keys, w);
    for (int i = 0; i < queries; ++i) {
      const Span seen = visible(t.run, t.query + i, keys, s.window);
      lse[std::int64_t{t.query + i} * s.heads + t.head] = core.kernels.softmax(n, seen.begin, seen.end, w.s + i * n);
    }
    core.gemm.block(w.thread, Operand::plain, Operand::plain, queries, s.dim, n, 1.0f, w.s, n,
                    h.v + keys.begin * s.kv_stride, s.kv_stride, 0.0f, o + t.query * s.q_stride + t.head * s.dim,
                    s.q_stride);
  });
}

namespace {

// The query heads of one kv head, one token, against the n keys its row holds. p: [heads of the group, n]
void attend_row(const Core& core, const Shape& s, int group, const float* q, const float* keys, const float* values,
                std::int64_t n, float* p, float* o) {
  core.kernels.dot_rows(group, n, s.dim, s.scale, q, keys, 0.0f, p, 0, n);
  if (s.cap > 0) core.kernels.softcap(group * n, s.cap, p);
  for (int h = 0; h < group; ++h) core.kernels.softmax(n, 0, n, p + h * n);
  core.kernels.weigh_rows(group, n, s.dim, p, n, values, 0.0f, o);
}

}  // namespace

void Core::attention(const Pass& pass, int layer, const float* q, const float* k, const float* v, float* o,
                     float* lse) {
  reserve_scores(*this, pass.tokens->longest_run);
  attend_within(*this, attention_shape(*this, layer), pass.tokens->runs, q, k, v, o, lse);
}

// A run on an empty row attends within itself. Any other goes token by token: into the row's ring, then against it. A
// layer that borrows keys finds them in its donor's, where the whole run is already: only the last token is sure of
// its window there (see advance).
void Core::attention_cached(const Pass& pass, int layer, const float* q, const float* k, const float* v, float* o,
                            float* lse) {
  const Shape s = attention_shape(*this, layer);
  const int donor = config.layers[static_cast<size_t>(layer)].kv_donor;
  LayerCache& cache = pass.cache->layers[static_cast<size_t>(donor >= 0 ? donor : layer)];
  std::vector<Run> fresh;
  std::vector<Task> tasks;
  double flops = 0;
  std::int64_t most_keys = 0;
  const auto is_fresh = [&](const Run& run, int row) {
    return pass.cache->lengths[static_cast<size_t>(row)] == 0 && run.end - run.begin > 1;
  };
  for (size_t i = 0; i < pass.tokens->runs.size(); ++i) {
    const Run& run = pass.tokens->runs[i];
    const int row = pass.cache_rows[i], tokens = run.end - run.begin;
    const std::int64_t capacity = cache.rows[static_cast<size_t>(row)].capacity;
    double cost = static_cast<double>(tokens);
    if (is_fresh(run, row)) {
      fresh.push_back(run);
      if (donor >= 0) continue;
    } else {
      const auto keys = std::min<std::int64_t>(pass.cache->lengths[static_cast<size_t>(row)] + tokens, capacity);
      cost = 4.0 * static_cast<double>(tokens * std::min(s.group, s.heads) * keys * s.dim);
      flops += cost * s.kv_heads;
      most_keys = std::max(most_keys, capacity);
    }
    for (int kv = 0; kv < s.kv_heads; ++kv) tasks.push_back({run, kv, 0, cost, row});
  }
  reserve_scores(*this, std::max<std::int64_t>(fresh.empty() ? 0 : pass.tokens->longest_run,
                                               sizes::cached_keys(std::min(s.group, s.heads), most_keys)));
  if (!fresh.empty()) attend_within(*this, s, fresh, q, k, v, o, lse);
  if (tasks.empty()) return;
  const auto timer = profile.time(Kernel::attention, flops);
  run_tasks(*this, tasks, [&](const Task& t, const ScoreBlocks& w) {
    const LayerCache::Row& row = cache.rows[static_cast<size_t>(t.row)];
    const std::int64_t head = row.first + std::int64_t{t.head} * row.capacity * s.dim;
    float *const keys = cache.k.data() + head, *const values = cache.v.data() + head;
    const Span heads = s.queries_of(t.head);
    const bool attends = !is_fresh(t.run, t.row) && heads.begin < heads.end;
    const int before = pass.cache->lengths[static_cast<size_t>(t.row)], tokens = t.run.end - t.run.begin;
    for (int i = attends ? 0 : std::max(0, tokens - row.capacity); i < tokens; ++i) {
      const std::int64_t token = t.run.begin + i, slot = (before + i) % row.capacity * s.dim;
      const std::int64_t at = token * s.kv_stride + t.head * s.dim, query = token * s.q_stride + heads.begin * s.dim;
      if (donor < 0) {
        std::copy_n(k + at, s.dim, keys + slot);
        std::copy_n(v + at, s.dim, values + slot);
      }
      if (attends)
        attend_row(*this, s, heads.end - heads.begin, q + query, keys, values, std::min(before + i + 1, row.capacity),
                   w.s, o + query);
    }
  });
}

// Per (run, kv head), so that dk and dv have one writer: all its query heads, block by block.
void Core::attention_backward(const Pass& pass, int layer, const float* q, const float* k, const float* v,
                              const float* o, const float* lse, float* d_o, Into how, float* dk, float* dv) {
  const Shape s = attention_shape(*this, layer);
  std::vector<Task> tasks;
  double flops = 0;
  for (const Run& run : pass.tokens->runs)
    for (int kv = 0; kv < s.kv_heads; ++kv) {
      const Span heads = s.queries_of(kv);
      const int group = std::max(0, heads.end - heads.begin);
      double cost = 0;
      for (int query = run.begin; query < run.end; query += kQueries) {
        const int end = std::min(run.end, query + kQueries);
        cost += 2.5 * group * block_flops(keys_of(run, query, end, s.window), end - query, s.dim);
      }
      tasks.push_back({run, kv, 0, cost});
      flops += cost;
    }
  const auto timer = profile.time(Kernel::attention_back, flops);
  run_tasks(*this, tasks, [&](const Task& t, const ScoreBlocks& w) {
    float* const dk_head = dk + t.head * s.dim;
    float* const dv_head = dv + t.head * s.dim;
    for (int i = t.run.begin; i < t.run.end && how == Into::overwrite; ++i)
      for (float* d : {dk_head, dv_head}) std::fill_n(d + i * s.kv_stride, s.dim, 0.0f);
    for (int head = s.queries_of(t.head).begin; head < s.queries_of(t.head).end; ++head) {
      const Head h = head_at(s, q, k, v, head);
      for (int query = t.run.begin; query < t.run.end; query += kQueries) {
        const int end = std::min(t.run.end, query + kQueries), queries = end - query;
        const Span keys = keys_of(t.run, query, end, s.window);
        const std::int64_t n = keys.end - keys.begin, at = query * s.q_stride + head * s.dim;
        scores(*this, s, h, query, queries, keys, w);
        if (s.cap > 0) std::copy_n(w.s, queries * n, w.capped);
        for (int i = 0; i < queries; ++i) {
          const Span seen = visible(t.run, query + i, keys, s.window);
          kernels.softmax_again(n, seen.begin, seen.end, lse[std::int64_t{query + i} * s.heads + head], w.s + i * n);
        }
        gemm.block(w.thread, Operand::transposed, Operand::plain, n, s.dim, queries, 1.0f, w.s, n, d_o + at, s.q_stride,
                   1.0f, dv_head + keys.begin * s.kv_stride, s.kv_stride);
        gemm.block(w.thread, Operand::plain, Operand::transposed, queries, n, s.dim, 1.0f, d_o + at, s.q_stride,
                   h.v + keys.begin * s.kv_stride, s.kv_stride, 0.0f, w.dp, n);
        for (int i = 0; i < queries; ++i) {
          const std::int64_t row = at + i * s.q_stride;
          kernels.softmax_backward(n, w.s + i * n, w.dp + i * n,
                                   static_cast<float>(kernels.dot(s.dim, d_o + row, o + row)));
        }
        if (s.cap > 0) kernels.softcap_backward(queries * n, s.cap, w.capped, w.s);
        gemm.block(w.thread, Operand::transposed, Operand::plain, n, s.dim, queries, s.scale, w.s, n,
                   h.q + query * s.q_stride, s.q_stride, 1.0f, dk_head + keys.begin * s.kv_stride, s.kv_stride);
        gemm.block(w.thread, Operand::plain, Operand::plain, queries, s.dim, n, s.scale, w.s, n,
                   h.k + keys.begin * s.kv_stride, s.kv_stride, 0.0f, d_o + at, s.q_stride);
      }
    }
  });
}

}  // namespace mw::engine
