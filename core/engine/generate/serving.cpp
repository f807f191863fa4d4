// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/serving.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/engine/transformer/attention_parts.h"
#include "core/engine/transformer/network_impl.h"
#include "core/engine/transformer/paged_batch.h"

namespace mw::engine {
namespace {

Error bad_room(const std::string& message, const std::string& found, const std::string& expected) {
  return Error({.id = "SERVE", .message = message, .found = found, .expected = expected});
}
Error bad_step(const std::string& message, const std::string& found, const std::string& expected) {
  return Error({.id = "STEP", .message = message, .found = found, .expected = expected});
}

void check(const Core& core, const ServeRoom& room) {
  if (core.part || !core.adapters.empty())
    throw bad_room("this network cannot be served", core.part ? "a part of a mesh" : "a network with adapters",
                   "a whole model on one device, its adapters added to the server");
  if (room.block_size < 1 || room.tokens < 1 || room.rows < 1 || room.context < 1)
    throw bad_room("a server without room",
                   std::to_string(room.tokens) + " tokens, " + std::to_string(room.rows) + " rows, context " +
                       std::to_string(room.context) + ", blocks of " + std::to_string(room.block_size),
                   "at least 1 of each");
  if (room.context > core.config.max_positions)
    throw bad_room("the context is longer than the model's", std::to_string(room.context),
                   "at most " + std::to_string(core.config.max_positions));
  std::vector<int> groups(core.layers.size(), 0);
  for (const ServeRoom::Group& g : room.groups)
    for (const int layer : g.layers) ++groups.at(static_cast<size_t>(layer));
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i] != (core.config.layers[i].has_k ? 1 : 0))
      throw bad_room("a layer's keys are not in one group of blocks",
                     "layer " + std::to_string(i) + " in " + std::to_string(groups[i]),
                     core.config.layers[i].has_k ? "1" : "0: it borrows them");
}

// Of each group the widest window of its layers and of those that borrow from them.
std::vector<int> windows_of(const Core& core, const PagedCache& cache, size_t groups) {
  std::vector<int> windows(groups, 0);
  for (size_t i = 0; i < cache.layers.size(); ++i) {
    int& window = windows[static_cast<size_t>(cache.layers[i].group)];
    window = std::max(window, attention_shape(core, static_cast<int>(i)).window);
  }
  return windows;
}

PagedCache make_paged_cache(const Core& core, const ServeRoom& room) {
  PagedCache cache;
  cache.block_size = room.block_size;
  cache.layers.resize(core.layers.size());
  const auto floats_of = [&](const ServeRoom::Group& g, int layer) {  // keys of a layer
    const model::Layer& l = core.config.layers[static_cast<size_t>(layer)];
    return std::int64_t{g.blocks} * room.block_size * l.kv_heads * l.head_dim;
  };
  for (size_t g = 0; g < room.groups.size(); ++g) {
    std::int64_t floats = 0;
    for (const int layer : room.groups[g].layers) floats += 2 * floats_of(room.groups[g], layer);
    cache.groups.emplace_back(core.device.arena, MemoryCategory::kv_cache, static_cast<size_t>(floats), "KV blocks");
    float* next = cache.groups.back().data();
    for (const int layer : room.groups[g].layers) {
      const std::int64_t of_layer = floats_of(room.groups[g], layer);
      cache.layers[static_cast<size_t>(layer)] = {static_cast<int>(g), next, next + of_layer, room.groups[g].blocks};
      next += 2 * of_layer;
    }
  }
  int widest = 0;
  for (size_t i = 0; i < core.layers.size(); ++i) {
    const model::Layer& l = core.config.layers[i];
    if (l.kv_donor >= 0) cache.layers[i] = cache.layers[static_cast<size_t>(l.kv_donor)];
    widest = std::max(widest, l.head_dim);
  }
  cache.tile_floats = (PagedCache::kTileKeys + 2 * kQueries) * widest;
  cache.tiles = Buffer<float>(core.device.arena, MemoryCategory::workspace,
                              static_cast<size_t>(cache.tile_floats * core.device.pool.threads()), "tiles of keys");
  return cache;
}

}  // namespace

struct Server::Impl {
  Network& network;
  Core& core;
  ServeRoom room;
  PagedCache cache;
  std::vector<int> windows;  // of the groups
  std::vector<AdapterSet> adapters;
  Buffer<float> low_rank;
  std::int64_t most_rank = 0;

  std::int64_t most_tokens() const { return std::max(room.tokens, room.rows); }

  void reserve() {
    core.prepare({.tokens = static_cast<int>(most_tokens()), .lowest = static_cast<int>(core.layers.size())});
    core.logit_rows(room.rows);
    core.prepare_rope(room.context - 1);
    reserve_scores(core, room.context);
  }

  void check_blocks(const ServeChunk& c) const {
    const int end = c.first + static_cast<int>(c.ids.size());
    if (c.blocks.size() != room.groups.size())
      throw bad_step("a chunk has blocks of another number of groups", std::to_string(c.blocks.size()),
                     std::to_string(room.groups.size()));
    for (size_t g = 0; g < c.blocks.size(); ++g) {
      const bool whole = c.first == 0 && c.ids.size() > 1;  // reads none of its own blocks
      const int begin = std::max(0, (whole ? end : c.first) - windows[g] + 1);
      if (c.blocks[g].size() < static_cast<size_t>((end + room.block_size - 1) / room.block_size))
        throw bad_step("a chunk's tokens have no blocks", std::to_string(c.blocks[g].size()) + " blocks",
                       "blocks for " + std::to_string(end) + " tokens");
      for (int i = begin / room.block_size; i < static_cast<int>(c.blocks[g].size()); ++i)
        if (const int block = c.blocks[g][static_cast<size_t>(i)]; block < 0 || block >= room.groups[g].blocks)
          throw bad_step("a chunk's block is not there",
                         std::to_string(block) + " for token " + std::to_string(i * room.block_size),
                         "0.." + std::to_string(room.groups[g].blocks - 1));
    }
  }

  void check(std::span<const ServeChunk> chunks) const {
    std::int64_t tokens = 0, rows = 0;
    for (const ServeChunk& c : chunks) {
      tokens += static_cast<std::int64_t>(c.ids.size());
      rows += c.logits == ServeChunk::Logits::last;
      if (c.ids.empty() || c.first < 0 || c.ids.size() > static_cast<size_t>(room.context) ||
          c.first > room.context - static_cast<int>(c.ids.size()))
        throw bad_step("a chunk is outside the context",
                       std::to_string(c.ids.size()) + " tokens from " + std::to_string(c.first),
                       "1.." + std::to_string(room.context));
      if (c.adapter < -1 || c.adapter >= static_cast<int>(adapters.size()))
        throw bad_step("an adapter that the server lacks", std::to_string(c.adapter),
                       "-1.." + std::to_string(static_cast<int>(adapters.size()) - 1));
      for (const int id : c.ids)
        if (id < 0 || id >= core.config.vocab)
          throw bad_step("a token is outside the vocabulary", std::to_string(id),
                         "0.." + std::to_string(core.config.vocab - 1));
      check_blocks(c);
    }
    if (chunks.empty() || tokens > room.tokens || rows > room.rows)
      throw bad_step("a step beyond the server's room",
                     std::to_string(tokens) + " tokens, " + std::to_string(rows) + " rows of logits",
                     "1.." + std::to_string(room.tokens) + " tokens, at most " + std::to_string(room.rows) + " rows");
  }

  std::span<float> step(std::span<const ServeChunk> chunks) {
    check(chunks);
    reserve();  // something else may have used the network
    std::vector<size_t> order(chunks.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return chunks[a].adapter < chunks[b].adapter; });
    Tokens tokens;
    ServedPass served;
    served.cache = &cache;
    served.low_rank = low_rank.data();
    served.most_rank = most_rank;
    std::vector<int> last(chunks.size());
    for (const size_t i : order) {
      const ServeChunk& c = chunks[i];
      const int begin = tokens.count;
      tokens.count += static_cast<int>(c.ids.size());
      tokens.ids.insert(tokens.ids.end(), c.ids.begin(), c.ids.end());
      for (int t = begin; t < tokens.count; ++t) tokens.positions.push_back(c.first + t - begin);
      tokens.runs.push_back({begin, tokens.count});
      tokens.longest_run = std::max(tokens.longest_run, tokens.count - begin);
      tokens.last_position = std::max(tokens.last_position, tokens.positions.back());
      served.rows.push_back({c.first, c.blocks});
      last[i] = tokens.count - 1;
      if (c.adapter < 0) continue;
      const AdapterSet* const own = &adapters[static_cast<size_t>(c.adapter)];
      if (served.adapted.empty() || served.adapted.back().adapter != own)
        served.adapted.push_back({begin, tokens.count, own});
      served.adapted.back().end = tokens.count;
    }
    tokens.origin = tokens.positions;
    const float* x = core.forward({.tokens = &tokens, .served = &served});
    std::vector<int> asked;
    for (size_t i = 0; i < chunks.size(); ++i)
      if (chunks[i].logits == ServeChunk::Logits::last) asked.push_back(last[i]);
    float* logits = core.logit_rows(room.rows);
    if (!asked.empty()) core.head_logits(x, asked, logits);
    return {logits, asked.size() * static_cast<size_t>(core.config.vocab)};
  }
};

Server::Server(Network& network, const ServeRoom& room)
    : impl_(std::make_unique<Impl>(Impl{network, network.impl_->core, room, {}, {}, {}, {}, 0})) {
  Core& core = impl_->core;
  check(core, room);
  core.release_step_memory();
  impl_->reserve();
  impl_->cache = make_paged_cache(core, room);
  impl_->windows = windows_of(core, impl_->cache, room.groups.size());
}
Server::~Server() = default;

int Server::add_adapter(std::span<const AdapterValues> values) {
  Core& core = impl_->core;
  AdapterSet set;
  set.index.resize(core.layers.size());
  for (auto& of_layer : set.index) of_layer.fill(-1);
  std::int64_t floats = 0, most_rank = impl_->most_rank;
  for (const AdapterValues& v : values) {
    const model::LoraTarget& t = v.target;
    if (v.rank < 1 || static_cast<std::int64_t>(v.a.size()) != v.rank * t.in ||
        static_cast<std::int64_t>(v.b.size()) != v.rank * t.out)
      throw Error({.id = "LORA",
                   .message = "an adapter's values have another size than its projection",
                   .place = t.module,
                   .found = std::to_string(v.a.size()) + " and " + std::to_string(v.b.size()),
                   .expected = std::to_string(v.rank * t.in) + " and " + std::to_string(v.rank * t.out)});
    floats += aligned_floats(v.rank * t.in) + aligned_floats(v.rank * t.out);
    most_rank = std::max(most_rank, std::int64_t{v.rank});
  }
  set.values = Buffer<float>(core.device.arena, MemoryCategory::adapters, static_cast<size_t>(floats), "LoRA adapters");
  float* next = set.values.data();
  for (const AdapterValues& v : values) {
    Adapter a{.layer = v.target.layer,
              .projection = projection_of(v.target.role),
              .in = v.target.in,
              .out = v.target.out,
              .rank = v.rank,
              .scaling = v.scaling};
    a.a = std::copy(v.a.begin(), v.a.end(), next) - v.a.size();
    a.b = next + aligned_floats(v.rank * v.target.in);
    std::copy(v.b.begin(), v.b.end(), a.b);
    next = a.b + aligned_floats(v.rank * v.target.out);
    set.index.at(static_cast<size_t>(a.layer))[static_cast<size_t>(a.projection)] =
        static_cast<int>(set.adapters.size());
    set.adapters.push_back(a);
  }
  if (most_rank > impl_->most_rank) {
    impl_->low_rank = {};
    impl_->low_rank = Buffer<float>(core.device.arena, MemoryCategory::activations,
                                    static_cast<size_t>(3 * impl_->most_tokens() * most_rank), "adapters' products");
    impl_->most_rank = most_rank;
  }
  impl_->adapters.push_back(std::move(set));
  return static_cast<int>(impl_->adapters.size()) - 1;
}

std::span<float> Server::step(std::span<const ServeChunk> chunks) {
  return impl_->step(chunks);
}
const ServeRoom& Server::room() const {
  return impl_->room;
}
Network& Server::network() const {
  return impl_->network;
}

}  // namespace mw::engine
