// SPDX-License-Identifier: Apache-2.0
// Incremental decoding: a KV cache and the step that extends it. Inside the engine room only.
#pragma once
#include <span>

#include "core/engine/core.h"

namespace mw::engine {

// Room for `tokens` of context; sliding layers keep no more than their window.
KvCache make_cache(const Core& core, int tokens);

// Logits [vocab] of the last of `ids`, which continue the cache: a whole prompt at first, then one token at a time.
// Valid until the next call.
const float* advance(Core& core, KvCache& cache, std::span<const int> ids);

}  // namespace mw::engine
