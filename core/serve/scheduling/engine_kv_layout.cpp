// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/engine_kv_layout.h"

#include <algorithm>

#include "core/base/error.h"

namespace mw::serve {
namespace {

std::int64_t block_count(std::int64_t tokens, std::int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

bool is_sliding(const model::Config& config, const model::Layer& layer) {
  return layer.attention == model::Attention::sliding && config.sliding_window > 0;
}

struct BlockDemand {  // blocks of a group: for one request of max_model_len, and for max_num_seqs of them
  std::int64_t one = 0, all = 0;
};

// In a sliding layer a request holds its window, one more block because the window is not aligned, and during prefill
// one chunk. A prefix cache doubles the window's share: a cached prefix is usable only if its last window is cached
// too.
BlockDemand block_demand(const SchedulerSettings& s, int window) {
  const std::int64_t bs = s.kv.block_size, whole = block_count(s.max_model_len, bs);
  if (window == 0) return {whole, s.max_num_seqs * whole};
  const std::int64_t held = block_count(window - 1, bs) + 1, chunk = block_count(s.max_num_batched_tokens, bs);
  const std::int64_t kept = s.prefix_cache == PrefixCache::on ? held : 0;
  return {std::min(whole, held + chunk), std::min(s.max_num_seqs * whole, s.max_num_seqs * (held + kept) + chunk)};
}

}  // namespace

SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings s, Bytes kv, OutOfWindowKv windows) {
  const std::int64_t bs = s.kv.block_size;
  if (bs < 1 || s.max_num_seqs < 1 || s.max_model_len < 1 || s.max_num_batched_tokens < 1)
    throw Error({.id = "SERVE",
                 .message = "the server could not serve any request",
                 .found = std::to_string(s.max_num_seqs) + " requests of " + std::to_string(s.max_model_len) +
                          " tokens, " + std::to_string(s.max_num_batched_tokens) + " tokens in a step, blocks of " +
                          std::to_string(bs),
                 .expected = "at least 1 of each"});
  std::int64_t bytes[2]{};  // of a block: full layers, sliding ones
  for (const model::Layer& l : config.layers)
    if (l.has_k)
      bytes[windows == OutOfWindowKv::freed && is_sliding(config, l)] +=
          2 * bs * l.kv_heads * l.head_dim * static_cast<std::int64_t>(sizeof(float));
  std::int64_t least = 0, most = 0;
  for (const int sliding : {0, 1}) {
    const BlockDemand d = block_demand(s, sliding ? config.sliding_window : 0);
    least += bytes[sliding] * d.one;
    most += bytes[sliding] * d.all;
  }
  const std::int64_t available = kv.value > 0 ? kv.value : most;
  if (available < least)
    throw Error(
        {.id = "SERVE",
         .message = "the KV cache is too small for one request of max_model_len tokens",
         .place = "serve.kv_gib",
         .found = to_text(Bytes(available)),
         .expected = "at least " + to_text(Bytes(least)) + " for " + std::to_string(s.max_model_len) + " tokens",
         .fix = "lower serve.max_model_len or give the KV cache more memory"});
  const double share = most > least ? static_cast<double>(available - least) / static_cast<double>(most - least) : 0;
  s.kv.groups.clear();
  s.kv.capacity = Bytes(0);
  for (const int sliding : {0, 1}) {
    if (bytes[sliding] == 0) continue;
    const int window = sliding ? config.sliding_window : 0;
    const BlockDemand d = block_demand(s, window);
    const auto blocks =
        static_cast<int>(std::min(1e9, static_cast<double>(d.one) + share * static_cast<double>(d.all - d.one)));
    s.kv.groups.push_back({.window = window, .block_bytes = Bytes(bytes[sliding]), .max_blocks = blocks});
    s.kv.capacity += Bytes(bytes[sliding]) * blocks;
  }
  return s;
}

SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows, const DeviceMemory& device) {
  SchedulerSettings s = lay_out_engine_kv(config, wanted, kv, windows);
  if (kv.value > 0) return s;
  plan::Serving work = planned_serving(config, s);
  work.groups.clear();
  const Ledger steps = plan::predict_memory(config, device.model, work).at_peak;  // without KV blocks
  const Bytes left = device.free - steps[MemoryCategory::activations] - steps[MemoryCategory::logits] -
                     steps[MemoryCategory::workspace];
  if (s.kv.capacity.value <= left.value / 2) return s;
  return lay_out_engine_kv(config, wanted, Bytes(std::max<std::int64_t>(1, left.value / 2)), windows);
}

engine::ServingCapacity engine_capacity(const model::Config& config, const SchedulerSettings& s) {
  engine::ServingCapacity room{.block_size = s.kv.block_size,
                               .groups = {},
                               .tokens = std::max(s.max_num_batched_tokens, s.max_num_seqs),
                               .rows = s.max_num_seqs,
                               .context = s.max_model_len};
  const bool separate_groups = s.kv.groups.size() > 1;
  for (const KvGroup& g : s.kv.groups) {
    engine::ServingCapacity::Group& group = room.groups.emplace_back();
    group.blocks = g.max_blocks;
    for (size_t i = 0; i < config.layers.size(); ++i)
      if (config.layers[i].has_k && (!separate_groups || is_sliding(config, config.layers[i]) == (g.window > 0)))
        group.layers.push_back(static_cast<int>(i));
  }
  return room;
}

plan::Serving planned_serving(const model::Config& config, const SchedulerSettings& settings) {
  const engine::ServingCapacity room = engine_capacity(config, settings);
  return {.tokens = room.tokens,
          .rows = room.rows,
          .context = room.context,
          .block_size = room.block_size,
          .groups = room.groups,
          .adapters = {}};
}

}  // namespace mw::serve
