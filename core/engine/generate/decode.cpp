// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/decode.h"

#include <algorithm>

namespace mw::engine {

KvCache make_cache(const Core& core, std::span<const int> tokens) {
  KvCache cache;
  cache.lengths.assign(tokens.size(), 0);
  for (const model::Layer& l : core.config.layers) {
    const bool sliding = l.attention == model::Attention::sliding && core.config.sliding_window > 0;
    LayerCache& c = cache.layers.emplace_back();
    if (!l.has_k) continue;  // it reads its donor's
    std::int64_t floats = 0;
    for (const int wanted : tokens) {
      c.rows.push_back({floats, sliding ? std::min(wanted, core.config.sliding_window) : wanted});
      floats += std::int64_t{c.rows.back().capacity} * l.kv_heads * l.head_dim;
    }
    c.k = Buffer<float>(core.device.arena, MemoryCategory::kv_cache, static_cast<size_t>(floats), "keys");
    c.v = Buffer<float>(core.device.arena, MemoryCategory::kv_cache, static_cast<size_t>(floats), "values");
  }
  return cache;
}

namespace {

// Layers that borrow keys read their donor's ring once the whole run is in it: a run that continues a row may be one
// token long then.
std::vector<Continuation> last_tokens(Core& core, KvCache& cache, std::span<const Continuation> steps) {
  std::vector<Continuation> left(steps.begin(), steps.end());
  const bool borrows = std::any_of(core.config.layers.begin(), core.config.layers.end(),
                                   [](const model::Layer& l) { return l.kv_donor >= 0; });
  for (Continuation& step : left)
    while (borrows && step.ids.size() > 1 && cache.lengths[static_cast<size_t>(step.row)] > 0) {
      const Continuation one{step.row, step.ids.first(1)};
      advance(core, cache, {&one, 1});
      step.ids = step.ids.subspan(1);
    }
  return left;
}

}  // namespace

float* advance(Core& core, KvCache& cache, std::span<const Continuation> all) {
  const std::vector<Continuation> steps = last_tokens(core, cache, all);
  Tokens tokens;
  std::vector<int> rows, last;
  for (const Continuation& step : steps) {
    const int begin = tokens.count, first = cache.lengths[static_cast<size_t>(step.row)];
    tokens.count += static_cast<int>(step.ids.size());
    tokens.ids.insert(tokens.ids.end(), step.ids.begin(), step.ids.end());
    for (int i = begin; i < tokens.count; ++i) tokens.positions.push_back(first + i - begin);
    tokens.runs.push_back({begin, tokens.count});
    tokens.longest_run = std::max(tokens.longest_run, tokens.count - begin);
    tokens.last_position = std::max(tokens.last_position, tokens.positions.back());
    rows.push_back(step.row);
    last.push_back(tokens.count - 1);
  }
  tokens.origin = tokens.positions;
  core.prepare({.tokens = tokens.count, .lowest = static_cast<int>(core.layers.size())});
  const float* x = core.forward({.tokens = &tokens, .cache = &cache, .cache_rows = rows});
  for (const Continuation& step : steps)
    cache.lengths[static_cast<size_t>(step.row)] += static_cast<int>(step.ids.size());
  float* logits = core.logit_rows(static_cast<std::int64_t>(cache.lengths.size()));  // kept while rows come and go
  core.enter_storage(ShardedStorage::kHead, mesh::Phase::forward);
  core.head_logits(x, last, logits);
  return logits;
}

}  // namespace mw::engine
