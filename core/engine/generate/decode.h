// SPDX-License-Identifier: Apache-2.0
// Incremental decoding: a KV cache and the step that extends it. Inside the engine room only.
#pragma once
#include <span>

#include "core/engine/transformer/core.h"

namespace mw::engine {

// Room for tokens[r] of context in row r; sliding layers keep no more than their window.
KvCache make_cache(const Core& core, std::span<const int> tokens);

// Tokens that follow what a row holds: a whole prompt at first, then one at a time.
struct Continuation {
  int row = 0;
  std::span<const int> ids;
};

// Logits [steps, vocab] (on a mesh the device's part of it) after the last token of each step, the caller's to
// overwrite until the next call. Rows may be of any length, and those that are not named cost nothing; each row at most
// once.
float* advance(Core& core, KvCache& cache, std::span<const Continuation> steps);

}  // namespace mw::engine
