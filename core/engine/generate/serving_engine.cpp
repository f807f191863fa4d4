// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/serving_engine.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/engine/generate/paged_decoder.h"
#include "core/engine/transformer/projections.h"

namespace mw::engine {
namespace {

Error bad_capacity(const std::string& message, const std::string& found, const std::string& expected) {
  return Error("SERVE", message, {.found = found, .expected = expected});
}
Error bad_step(const std::string& message, const std::string& found, const std::string& expected) {
  return Error("STEP", message, {.found = found, .expected = expected});
}

void check(const Transformer& net, const ServingCapacity& capacity) {
  if (net.hooks || !net.weights.adapters.empty())
    throw bad_capacity("this network cannot be served", net.hooks ? "a part of a mesh" : "a network with adapters",
                       "a whole model on one device, its adapters added to the server");
  if (capacity.block_size < 1 || capacity.tokens < 1 || capacity.rows < 1 || capacity.context < 1)
    throw bad_capacity("a server without capacity",
                       std::to_string(capacity.tokens) + " tokens, " + std::to_string(capacity.rows) +
                           " rows, context " + std::to_string(capacity.context) + ", blocks of " +
                           std::to_string(capacity.block_size),
                       "at least 1 of each");
  if (capacity.context > net.config.max_positions)
    throw bad_capacity("the context is longer than the model's", std::to_string(capacity.context),
                       "at most " + std::to_string(net.config.max_positions));
  std::vector<int> groups(net.weights.layers.size(), 0);
  for (const ServingCapacity::Group& g : capacity.groups)
    for (const int layer : g.layers) ++groups.at(static_cast<size_t>(layer));
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i] != (net.config.layers[i].has_k ? 1 : 0))
      throw bad_capacity("a layer's keys are not in one group of blocks",
                         "layer " + std::to_string(i) + " in " + std::to_string(groups[i]),
                         net.config.layers[i].has_k ? "1" : "0: it borrows them");
}

// Returns for each group the widest window of its layers and of the layers that borrow their keys.
std::vector<int> windows_of(const Transformer& net, const PagedCache& cache, size_t groups) {
  std::vector<int> windows(groups, 0);
  for (size_t i = 0; i < cache.layers.size(); ++i) {
    int& window = windows[static_cast<size_t>(cache.layers[i].group)];
    window = std::max(window, attention_shape(net, static_cast<int>(i)).window);
  }
  return windows;
}

}  // namespace

struct ServingEngine::Impl {
  Network& network;
  Transformer& net;
  ServingCapacity capacity;
  PagedCache cache;
  std::vector<int> windows;  // of the groups
  std::vector<AdapterSet> adapters;
  DeviceBuffer<float> low_rank;
  std::int64_t max_rank = 0;

  std::int64_t max_tokens() const { return std::max(capacity.tokens, capacity.rows); }

  void reserve() {
    net.buffers.prepare(forward_shape(net.weights, max_tokens()));
    net.buffers.logit_rows(capacity.rows);
    net.buffers.prepare_rope(capacity.context - 1);
    reserve_score_blocks(net, capacity.context);
  }

  void check_blocks(const TokenChunk& c) const {
    const int end = c.first + static_cast<int>(c.ids.size());
    if (c.blocks.size() != capacity.groups.size())
      throw bad_step("a chunk has blocks of another number of groups", std::to_string(c.blocks.size()),
                     std::to_string(capacity.groups.size()));
    for (size_t g = 0; g < c.blocks.size(); ++g) {
      const bool whole = c.first == 0 && c.ids.size() > 1;  // reads none of its own blocks
      const int begin = std::max(0, (whole ? end : c.first) - windows[g] + 1);
      if (c.blocks[g].size() < static_cast<size_t>((end + capacity.block_size - 1) / capacity.block_size))
        throw bad_step("a chunk's tokens have no blocks", std::to_string(c.blocks[g].size()) + " blocks",
                       "blocks for " + std::to_string(end) + " tokens");
      for (int i = begin / capacity.block_size; i < static_cast<int>(c.blocks[g].size()); ++i)
        if (const int block = c.blocks[g][static_cast<size_t>(i)]; block < 0 || block >= capacity.groups[g].blocks)
          throw bad_step("a chunk's block is not there",
                         std::to_string(block) + " for token " + std::to_string(i * capacity.block_size),
                         "0.." + std::to_string(capacity.groups[g].blocks - 1));
    }
  }

  void check(std::span<const TokenChunk> chunks) const {
    std::int64_t tokens = 0, rows = 0;
    for (const TokenChunk& c : chunks) {
      tokens += static_cast<std::int64_t>(c.ids.size());
      rows += c.logits == TokenChunk::Logits::last;
      if (c.ids.empty() || c.first < 0 || c.ids.size() > static_cast<size_t>(capacity.context) ||
          c.first > capacity.context - static_cast<int>(c.ids.size()))
        throw bad_step("a chunk is outside the context",
                       std::to_string(c.ids.size()) + " tokens from " + std::to_string(c.first),
                       "1.." + std::to_string(capacity.context));
      if (c.adapter < -1 || c.adapter >= static_cast<int>(adapters.size()))
        throw bad_step("an adapter that the server lacks", std::to_string(c.adapter),
                       "-1.." + std::to_string(static_cast<int>(adapters.size()) - 1));
      for (const int id : c.ids)
        if (id < 0 || id >= net.config.vocab)
          throw bad_step("a token is outside the vocabulary", std::to_string(id),
                         "0.." + std::to_string(net.config.vocab - 1));
      check_blocks(c);
    }
    if (chunks.empty() || tokens > capacity.tokens || rows > capacity.rows)
      throw bad_step(
          "a step beyond the server's capacity",
          std::to_string(tokens) + " tokens, " + std::to_string(rows) + " rows of logits",
          "1.." + std::to_string(capacity.tokens) + " tokens, at most " + std::to_string(capacity.rows) + " rows");
  }

  std::span<float> step(std::span<const TokenChunk> chunks) {
    check(chunks);
    reserve();  // something else may have used the network
    return compute_step(net, {.chunks = chunks,
                              .cache = &cache,
                              .adapters = adapters,
                              .low_rank = low_rank.data(),
                              .max_rank = max_rank,
                              .max_context = capacity.context,
                              .logit_rows = capacity.rows});
  }
};

ServingEngine::ServingEngine(Network& network, const ServingCapacity& capacity)
    : impl_(std::make_unique<Impl>(Impl{network, network.transformer(), capacity, {}, {}, {}, {}, 0})) {
  Transformer& net = impl_->net;
  check(net, capacity);
  network.release_step_memory();
  impl_->reserve();
  impl_->cache = make_paged_cache(net, capacity.block_size, capacity.groups, ChunkTiles::yes);
  impl_->windows = windows_of(net, impl_->cache, capacity.groups.size());
}
ServingEngine::~ServingEngine() = default;

int ServingEngine::add_adapter(std::span<const AdapterValues> values) {
  Transformer& net = impl_->net;
  AdapterSet set;
  set.index.resize(net.weights.layers.size());
  for (auto& of_layer : set.index) of_layer.fill(-1);
  std::int64_t max_rank = impl_->max_rank;
  std::vector<LoraShape> shapes;
  for (const AdapterValues& v : values) {
    const model::LoraTarget& t = v.target;
    if (v.rank < 1 || static_cast<std::int64_t>(v.a.size()) != v.rank * t.in ||
        static_cast<std::int64_t>(v.b.size()) != v.rank * t.out ||
        (!v.m.empty() && static_cast<std::int64_t>(v.m.size()) != t.out))
      throw Error("LORA", "an adapter's values have another size than its projection",
                  {.place = t.module,
                   .found = std::to_string(v.a.size()) + " and " + std::to_string(v.b.size()),
                   .expected = std::to_string(v.rank * t.in) + " and " + std::to_string(v.rank * t.out)});
    shapes.push_back({t.layer, projection_of(t.role), t.in, t.out, v.rank, !v.m.empty()});
    max_rank = std::max(max_rank, std::int64_t{v.rank});
  }
  const BufferLayout layout = lay_out_adapters(adapter_tensors(shapes));
  set.values = DeviceBuffer<float>(net.device.arena, layout.allocation);
  auto field = layout.fields.begin(),
       norm = layout.fields.end() - static_cast<std::ptrdiff_t>(row_norms(shapes).size());
  for (const AdapterValues& v : values) {
    Adapter a{.layer = v.target.layer,
              .projection = projection_of(v.target.role),
              .in = v.target.in,
              .out = v.target.out,
              .rank = v.rank,
              .scaling = v.scaling};
    a.a = field_at(set.values.data(), *field++);
    a.b = field_at(set.values.data(), *field++);
    std::copy(v.a.begin(), v.a.end(), a.a);
    std::copy(v.b.begin(), v.b.end(), a.b);
    if (!v.m.empty()) {
      a.m = field_at(set.values.data(), *field++);
      a.norm = field_at(set.values.data(), *norm++);
      std::copy(v.m.begin(), v.m.end(), a.m);
      const LayerWeights& layer = net.weights.layers[static_cast<size_t>(a.layer)];
      update_row_norms(net.device, *layer.projection[static_cast<size_t>(a.projection)], a);
    }
    set.index.at(static_cast<size_t>(a.layer))[static_cast<size_t>(a.projection)] =
        static_cast<int>(set.adapters.size());
    set.adapters.push_back(a);
  }
  if (max_rank > impl_->max_rank) {
    impl_->low_rank = {};
    impl_->low_rank = DeviceBuffer<float>(net.device.arena, adapter_products(impl_->max_tokens(), max_rank));
    impl_->max_rank = max_rank;
  }
  impl_->adapters.push_back(std::move(set));
  return static_cast<int>(impl_->adapters.size()) - 1;
}

std::span<float> ServingEngine::step(std::span<const TokenChunk> chunks) {
  return impl_->step(chunks);
}
const ServingCapacity& ServingEngine::capacity() const {
  return impl_->capacity;
}
Network& ServingEngine::network() const {
  return impl_->network;
}

}  // namespace mw::engine
