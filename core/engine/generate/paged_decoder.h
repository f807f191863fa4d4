// SPDX-License-Identifier: Apache-2.0
// Decoding against a KV cache in blocks: the step that serving and sampling share, and the cache of sampling, where
// each sequence has a fixed range of blocks.
#pragma once
#include <span>
#include <vector>

#include "core/engine/generate/serving_engine.h"
#include "core/engine/transformer/paged_attention.h"

namespace mw::engine {

// Allocates the blocks of the groups. With tiles: also for chunks of several tokens that continue a row.
enum class ChunkTiles { no, yes };
PagedCache make_paged_cache(const Transformer& net, int block_size, const std::vector<BlockGroup>& groups,
                            ChunkTiles tiles);

struct PagedStep {
  std::span<const TokenChunk> chunks;
  const PagedCache* cache = nullptr;
  std::span<const AdapterSet> adapters;  // by TokenChunk::adapter
  float* low_rank = nullptr;             // see PagedBatch
  std::int64_t max_rank = 0;
  int max_context = 0;  // most tokens of a row
  int logit_rows = 0;   // rows of logits to allocate; at least the chunks that ask for theirs
};
// Adds the chunks' keys and values to their blocks and returns the logits [chunks that ask, vocab] of their last tokens
// (on a mesh the device's part of the vocabulary). The caller may overwrite them; they are valid until the next step.
std::span<float> compute_step(Transformer& net, const PagedStep& step);

// Next tokens of a row: a whole prompt first, then one token at a time.
struct Continuation {
  int row = 0;
  std::span<const int> ids;
};

class SequenceDecoder {
 public:
  // Allocates blocks for tokens[r] tokens in row r; sliding layers keep the blocks of their window.
  SequenceDecoder(Transformer& net, std::span<const int> tokens);
  // Logits [continuations, vocab] after the last token of each, as compute_step() returns them. Each row at most once;
  // rows that are not named cost nothing.
  std::span<float> advance(std::span<const Continuation> continuations);

 private:
  struct Row {
    int length = 0;
    int first[kSequenceGroups] = {}, count[kSequenceGroups] = {};  // its blocks
    std::vector<int> blocks[kSequenceGroups];                      // by tokens; -1: behind the window
    std::span<const int> spans[kSequenceGroups];
  };
  void extend(Row& row, int tokens);

  Transformer& net_;
  std::vector<Row> rows_;
  int max_context_ = 0;
  PagedCache cache_;
};

}  // namespace mw::engine
