// SPDX-License-Identifier: Apache-2.0
#include "core/engine/decode.h"

#include <algorithm>
#include <numeric>

namespace mw::engine {

KvCache make_cache(const Core& core, int tokens) {
  KvCache cache;
  for (const model::Layer& l : core.config.layers) {
    const bool sliding = l.attention == model::Attention::sliding && core.config.sliding_window > 0;
    LayerCache& c = cache.layers.emplace_back();
    if (!l.has_k) continue;  // it reads its donor's
    c.capacity = sliding ? std::min(tokens, core.config.sliding_window) : tokens;
    const auto floats =
        static_cast<size_t>(c.capacity) * static_cast<size_t>(l.kv_heads) * static_cast<size_t>(l.head_dim);
    c.k = Buffer<float>(core.device.arena, MemoryCategory::kv_cache, floats, "keys");
    c.v = Buffer<float>(core.device.arena, MemoryCategory::kv_cache, floats, "values");
  }
  return cache;
}

const float* advance(Core& core, KvCache& cache, std::span<const int> ids) {
  Tokens tokens;
  tokens.count = static_cast<int>(ids.size());
  tokens.ids.assign(ids.begin(), ids.end());
  tokens.positions.resize(ids.size());
  std::iota(tokens.positions.begin(), tokens.positions.end(), cache.length);
  tokens.origin = tokens.positions;
  tokens.runs = {{0, tokens.count}};
  tokens.longest_run = tokens.count;
  tokens.last_position = tokens.positions.back();
  core.prepare({.tokens = tokens.count, .lowest = static_cast<int>(core.layers.size())});
  const float* x = core.forward({.tokens = &tokens, .cache = &cache});
  cache.length += tokens.count;
  float* logits = core.logit_rows(1);
  const int last[] = {tokens.count - 1};
  core.head_logits(x, last, logits);
  return logits;
}

}  // namespace mw::engine
