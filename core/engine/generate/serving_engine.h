// SPDX-License-Identifier: Apache-2.0
// Steps of continuous batching over a Network: rows that decode and chunks of prompts in one pass, against a KV cache
// in blocks (category kv_cache) whose ids the caller assigns, each row with an adapter of its own. One thread.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "core/engine/layout/cache_layout.h"
#include "core/model/inventory.h"

namespace mw::engine {

class Network;

struct ServingCapacity {
  using Group = BlockGroup;
  int block_size = 16;  // tokens
  std::vector<Group> groups;
  int tokens = 0, rows = 0;  // at most in a step; rows of logits
  int context = 0;           // tokens of the longest request
};

struct AdapterValues {  // of one projection
  model::LoraTarget target;
  int rank = 0;
  float scaling = 0;
  std::span<const float> a, b;  // [r, in], [out, r]; copied
  std::span<const float> m{};   // [out], of DoRA; empty: plain LoRA
};

struct TokenChunk {                              // consecutive tokens of one request
  std::span<const int> ids;                      // of its prompt or its last one
  int first = 0;                                 // position of ids[0]
  std::span<const std::span<const int>> blocks;  // by group; entry i is of tokens [i * block_size, ...), -1: none
  int adapter = -1;                              // as add_adapter() counts; -1: the model alone
  enum class Logits { no, last } logits = Logits::last;
};

class ServingEngine {
 public:
  // Reserves all memory that steps need. Throws OutOfMemory; Error SERVE for a capacity that
  // lacks a layer, a Network with adapters or a part of a mesh.
  ServingEngine(Network& network, const ServingCapacity& capacity);
  ~ServingEngine();
  // Copies it to the device (category adapters); throws Error LORA for values of other sizes.
  int add_adapter(std::span<const AdapterValues> values);
  // Computes every token and keeps its keys. A chunk needs a block for each of its tokens and for the earlier tokens
  // that they see; the tokens of a whole prompt that are behind the window need none. Returns the logits [chunks that
  // ask, vocab] of their last tokens in order; the caller may overwrite them until the next step. Throws Error STEP for
  // a chunk that exceeds the capacity or names an invalid block; nothing is computed then.
  std::span<float> step(std::span<const TokenChunk> chunks);
  const ServingCapacity& capacity() const;
  Network& network() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::engine
