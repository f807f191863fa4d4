// SPDX-License-Identifier: Apache-2.0
// Steps of a server over a Network: rows that decode and chunks of prompts in one pass, against a KV cache in blocks
// (category kv_cache) whose ids come from outside, each row with an adapter of its own. One thread.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "core/engine/transformer/network.h"

namespace mw::engine {

struct ServeRoom {
  struct Group {              // layers with keys of their own that use the same blocks
    std::vector<int> layers;  // of the model
    int blocks = 0;
  };
  int block_size = 16;  // tokens
  std::vector<Group> groups;
  int tokens = 0, rows = 0;  // most of a step; of its logits
  int context = 0;           // tokens of the longest request
};

struct AdapterValues {  // of one projection
  model::LoraTarget target;
  int rank = 0;
  float scaling = 0;
  std::span<const float> a, b;  // [r, in], [out, r]; copied
};

struct ServeChunk {                              // tokens of one request that follow those in its blocks
  std::span<const int> ids;                      // of its prompt or its last one
  int first = 0;                                 // position of ids[0]
  std::span<const std::span<const int>> blocks;  // by group; entry i is of tokens [i * block_size, ...), -1: none
  int adapter = -1;                              // as add_adapter() counts; -1: the model alone
  enum class Logits { no, last } logits = Logits::last;
};

class Server {
 public:
  // Reserves all that steps need, so what is left after it stays. Throws OutOfMemory; Error SERVE for a room that lacks
  // a layer, a Network with adapters or a part of a mesh.
  Server(Network& network, const ServeRoom& room);
  ~Server();
  // Copies it to the device (category adapters); throws Error LORA for values of other sizes.
  int add_adapter(std::span<const AdapterValues> values);
  // Every token is computed and its keys are kept. A chunk needs a block for each of its tokens, and for those before
  // that they see; where a prompt is whole, those behind the window may lack one. Logits [chunks that ask, vocab] of
  // their last tokens, in order, the caller's to overwrite until the next step. Throws Error STEP for one that does not
  // fit the room or names a block that is not there; nothing is computed then.
  std::span<float> step(std::span<const ServeChunk> chunks);
  const ServeRoom& room() const;
  Network& network() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::engine
