// SPDX-License-Identifier: Apache-2.0
// What attention over runs, over rows of a cache and over its blocks have in common: a layer's shape, tasks shared out
// by cost, room for scores. Inside the engine room only.
#pragma once
#include <vector>

#include "core/engine/transformer/core.h"

namespace mw::engine {

constexpr int kQueries = sizes::kQueries;

struct Span {
  int begin, end;
};

struct AttentionTask {
  Run run;
  int head;
  int query;  // first query of the block, forward only
  double cost;
  int row = 0;  // of the cache
};

struct AttentionShape {
  std::int64_t q_stride, kv_stride, dim;
  int window, heads, kv_heads;
  int group, skipped;  // query heads of a KV head; of the first one those that other devices have
  float scale, cap;
  int kv_of(int head) const { return (skipped + head) / group; }
  Span queries_of(int kv) const {
    return {std::max(0, kv * group - skipped), std::min(heads, (kv + 1) * group - skipped)};
  }
};
AttentionShape attention_shape(const Core& core, int layer);

// Room for blocks of kQueries queries against so many keys, for every thread.
void reserve_scores(Core& core, std::int64_t keys);
struct ScoreBlocks {
  std::int64_t thread;
  float *s, *dp, *capped;
};
ScoreBlocks scores_of(const Core& core, std::int64_t thread);

// Tasks of one thread: [first, last) by cumulated cost, the same every time.
std::vector<size_t> cut_by_cost(const std::vector<AttentionTask>& tasks, int threads);

template <class F>
void run_tasks(Core& core, const std::vector<AttentionTask>& tasks, F fn) {
  if (tasks.size() == 1) return fn(tasks.front(), scores_of(core, 0));
  const int threads = core.device.pool.threads();
  const std::vector<size_t> cuts = cut_by_cost(tasks, threads);
  core.device.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t)
      for (size_t i = cuts[static_cast<size_t>(t)]; i < cuts[static_cast<size_t>(t) + 1]; ++i)
        fn(tasks[i], scores_of(core, t));
  });
}

// Runs that attend to themselves only, block by block. lse [n, heads]
void attend_within(Core& core, const AttentionShape& s, std::span<const Run> runs, const float* q, const float* k,
                   const float* v, float* o, float* lse);

}  // namespace mw::engine
