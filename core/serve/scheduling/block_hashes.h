// SPDX-License-Identifier: Apache-2.0
// Content hashes of KV blocks, by which the prefix cache finds them. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mw::serve {

using BlockHash = std::uint64_t;  // of the tokens of a full block and of all tokens before it

// Hashes of the full blocks of a prompt. `salt` separates prompts whose keys and values differ, e.g. by adapter.
std::vector<BlockHash> hash_blocks(std::span<const int> ids, int block_size, std::uint64_t salt = 0);

// Hashes of the full blocks of a synthetic prompt of `len` tokens, without generating its tokens: the first `shared` of
// them are determined by `shared_seed`, the others by `seed` (TimedRequest in serve/load/load.h).
std::vector<BlockHash> hash_synthetic_blocks(std::uint64_t shared_seed, int shared, std::uint64_t seed, int len,
                                             int block_size);

}  // namespace mw::serve
