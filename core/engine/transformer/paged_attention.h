// SPDX-License-Identifier: Apache-2.0
// Attention against a KV cache in blocks (PagedAttention, Kwon et al. 2023): rows that decode and chunks of prompts in
// one pass. All keys of a step are written before any is read, so rows can share a block in the step that fills it.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "core/engine/transformer/attention.h"

namespace mw::engine {

struct PagedCache {
  struct Layer {                       // a layer without keys of its own refers to those of its donor
    int group = 0;                     // whose block ids it uses
    float *k = nullptr, *v = nullptr;  // [kv_heads, blocks, block_size, head_dim]
    std::int64_t blocks = 0;
  };
  int block_size = 0;
  std::vector<Layer> layers;
  std::vector<DeviceBuffer<float>> groups;
  // key_tiles() of every thread: a tile of keys or values [kTileKeys, head_dim], and the queries and outputs of a block
  // of queries. Needed for chunks of several tokens that continue a row.
  static constexpr std::int64_t kTileKeys = sizes::kTileKeys;
  DeviceBuffer<float> tiles;
  std::int64_t tile_floats = 0;  // of a thread
};

struct PagedRow {                                // the row of the cache that a run of tokens continues
  int first = 0;                                 // position of the run's first token; the cache holds the earlier ones
  std::span<const std::span<const int>> blocks;  // by group; entry i holds tokens [i * block_size, ...)
};

struct AdapterSet {
  std::vector<Adapter> adapters;
  std::vector<std::array<int, kProjections>> index;  // by layer; -1: none
  DeviceBuffer<float> values;
  const Adapter* at(int layer, Projection p) const {
    const int i = index[static_cast<size_t>(layer)][static_cast<size_t>(p)];
    return i < 0 ? nullptr : &adapters[static_cast<size_t>(i)];
  }
};

struct AdapterSpan {  // tokens [begin, end) of the pass use this adapter
  std::int64_t begin = 0, end = 0;
  const AdapterSet* adapter = nullptr;
};

struct PagedBatch {
  const PagedCache* cache = nullptr;
  std::vector<PagedRow> rows;  // by run
  int max_context = 0;         // most tokens that a row will hold; scores of decoded tokens are reserved for them
  std::vector<AdapterSpan> adapted;
  float* low_rank = nullptr;  // [3, n, max_rank] A x of up to three projections
  std::int64_t max_rank = 0;
};

// Attention of the runs of pass.paged; their keys and values are added to the cache. A run of several tokens from
// position 0 attends within itself, other runs of several tokens copy the keys that they see tile by tile, and single
// tokens read the cache in place.
void attend_paged(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values);

// Computes attend_paged() for the queries of pass.outputs only: q, o and lse have rows for these alone.
void attend_outputs(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values);

}  // namespace mw::engine
