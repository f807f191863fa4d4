// SPDX-License-Identifier: Apache-2.0
// What a step of a server computes with: keys and values in blocks, and adapters of which each row may have another.
// Inside the engine room only.
#pragma once
#include <array>
#include <vector>

#include "core/engine/transformer/core.h"

namespace mw::engine {

struct PagedCache {
  struct Layer {  // of a borrower its donor's
    int group = 0;
    float *k = nullptr, *v = nullptr;  // [kv_heads, blocks, block_size, head_dim]: neighbouring blocks go on in memory
    std::int64_t blocks = 0;
  };
  int block_size = 0;
  std::vector<Layer> layers;
  std::vector<Buffer<float>> groups;
  // Of each thread: keys or values that queries in a block read, [kTileKeys, head_dim], the queries, what they get.
  static constexpr std::int64_t kTileKeys = sizes::kTileKeys;
  Buffer<float> tiles;
  std::int64_t tile_floats = 0;
};

struct PagedRow {                                // of a run
  int first = 0;                                 // position of its first token: so many are in the cache
  std::span<const std::span<const int>> blocks;  // by group; entry i has tokens [i * block_size, ...)
};

struct AdapterSet {
  std::vector<Adapter> adapters;
  std::vector<std::array<int, kProjections>> index;  // by layer; -1: none
  Buffer<float> values;
  const Adapter* at(int layer, Projection p) const {
    const int i = index[static_cast<size_t>(layer)][static_cast<size_t>(p)];
    return i < 0 ? nullptr : &adapters[static_cast<size_t>(i)];
  }
};

struct AdapterRows {  // tokens [begin, end) of the pass
  std::int64_t begin = 0, end = 0;
  const AdapterSet* adapter = nullptr;
};

struct ServedPass {
  const PagedCache* cache = nullptr;
  std::vector<PagedRow> rows;  // of each run
  std::vector<AdapterRows> adapted;
  float* low_rank = nullptr;  // [3, n, most_rank] A x of up to three projections
  std::int64_t most_rank = 0;
};

}  // namespace mw::engine
