// SPDX-License-Identifier: Apache-2.0
// The attention block of a layer, and causal attention over runs of tokens: 64 queries at a time against the keys that
// they can see, without a [tokens, tokens] matrix and without keys left of the window or in another run.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// h = x + post_attention_norm(o_proj(attention(input_norm(x)))).
void attention_block(Transformer& net, const PassContext& pass, int layer, LayerActivations& s, float* h);
// scratch.dx: in the gradient of h, out that of x if the layer below needs it.
void attention_block_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& s, bool needs_dx);
// Recomputes h from the kept output of attention, bit for bit.
void recompute_residual(Transformer& net, std::int64_t n, int layer, const LayerActivations& s, float* h);

// --- Shared with paged attention ---

constexpr int kQueries = sizes::kQueries;

struct TokenSpan {
  int begin, end;
};

struct AttentionTask {
  TokenRun run;
  int head;
  int query;  // first query of the block, forward only
  double cost;
  int row = 0;  // of the cache
};

// A layer's attention on this device.
struct AttentionShape {
  std::int64_t q_stride, kv_stride, dim;
  int window, heads, kv_heads;
  int group;    // query heads of a KV head
  int skipped;  // query heads of the first KV head that other devices have
  float scale, cap;
  int kv_of(int head) const { return (skipped + head) / group; }
  TokenSpan queries_of(int kv) const {
    return {std::max(0, kv * group - skipped), std::min(heads, (kv + 1) * group - skipped)};
  }
};
AttentionShape attention_shape(const Transformer& net, int layer);

struct AttentionValues {  // rows by token: q, o [heads * dim], k, v [kv_heads * dim], lse [heads]
  const float *q, *k, *v;
  float *o, *lse;
};

// Allocates blocks of kQueries queries against `keys` keys for every thread.
void reserve_scores(Transformer& net, std::int64_t keys);
struct ScoreBlocks {
  std::int64_t thread;
  float *s, *dp, *capped;
};
ScoreBlocks scores_of(const Transformer& net, std::int64_t thread);

// The first task of each thread, and the number of tasks: a static partition by cost.
std::vector<size_t> cut_by_cost(const std::vector<AttentionTask>& tasks, int threads);

template <class F>
void run_tasks(Transformer& net, const std::vector<AttentionTask>& tasks, F fn) {
  if (tasks.size() == 1) return fn(tasks.front(), scores_of(net, 0));
  const int threads = net.device.pool.threads();
  const std::vector<size_t> cuts = cut_by_cost(tasks, threads);
  net.device.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t thread = first; thread < last; ++thread)
      for (size_t i = cuts[static_cast<size_t>(thread)]; i < cuts[static_cast<size_t>(thread) + 1]; ++i)
        fn(tasks[i], scores_of(net, thread));
  });
}

// Runs that attend only to themselves.
void attend_within(Transformer& net, const AttentionShape& s, std::span<const TokenRun> runs,
                   const AttentionValues& values);

}  // namespace mw::engine
