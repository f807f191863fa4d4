// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/cache_layout.h"

#include <algorithm>

namespace mw::engine {

CacheLayout lay_out_cache(const ModelShape& model, int block_size, const std::vector<BlockGroup>& groups) {
  CacheLayout cache;
  cache.layers.resize(model.config.layers.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    std::int64_t bytes = 0;  // without gaps
    for (const int layer : groups[g].layers) {
      const std::int64_t keys = groups[g].blocks * block_size * model.kv_width(static_cast<size_t>(layer)) *
                                static_cast<std::int64_t>(sizeof(float));
      cache.layers[static_cast<size_t>(layer)] = {
          static_cast<int>(g), {static_cast<int>(g), bytes}, {static_cast<int>(g), bytes + keys}};
      bytes += 2 * keys;
    }
    cache.groups.push_back({MemoryCategory::kv_cache, "KV blocks", Bytes(bytes)});
  }
  for (size_t i = 0; i < cache.layers.size(); ++i)
    if (const int donor = model.config.layers[i].kv_donor; donor >= 0)
      cache.layers[i] = cache.layers[static_cast<size_t>(donor)];
  return cache;
}

std::vector<BlockGroup> sequence_groups(const ModelShape& model) {
  std::vector<BlockGroup> groups(kSequenceGroups);
  for (size_t i = 0; i < model.config.layers.size(); ++i) {
    const model::Layer& l = model.config.layers[i];
    const bool slides = l.attention == model::Attention::sliding && model.config.sliding_window > 0;
    if (l.has_k) groups[slides ? 1 : 0].layers.push_back(static_cast<int>(i));
  }
  return groups;
}

std::int64_t sequence_blocks(const ModelShape& model, int group, std::int64_t tokens) {
  const auto blocks_of = [](std::int64_t n) { return (n + sizes::kSamplerBlock - 1) / sizes::kSamplerBlock; };
  return group == 0 ? blocks_of(tokens) : std::min(blocks_of(tokens), blocks_of(model.config.sliding_window) + 1);
}

}  // namespace mw::engine
