// SPDX-License-Identifier: Apache-2.0
// A batch without its padding: the real tokens, grouped into runs that attend within themselves. Any thread.
#pragma once
#include <vector>

#include "core/engine/transformer/network.h"

namespace mw::engine {

struct TokenRun {  // tokens [begin, end): one segment of one row, in order
  int begin, end;
};

struct Tokens {
  int count = 0;
  std::vector<int> ids, positions, targets;
  std::vector<int> origin;  // index in the batch, row * len + column
  std::vector<TokenRun> runs;
  std::vector<int> loss_tokens;  // indices of tokens with a target, ascending
  int longest_run = 0, last_position = 0;
};

// Throws Error on spans of the wrong size, ids or targets outside the vocabulary, negative positions.
void check_batch(const TokenBatch& batch, int vocab, int max_positions);
// Throws what check_batch() throws.
Tokens remove_padding(const TokenBatch& batch, int vocab, int max_positions);

}  // namespace mw::engine
