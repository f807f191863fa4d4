// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/block_hashes.h"

#include <algorithm>

#include "core/base/rng.h"

namespace mw::serve {

std::vector<BlockHash> hash_blocks(std::span<const int> ids, int block_size, std::uint64_t salt) {
  const auto size = static_cast<size_t>(std::max(1, block_size));
  std::vector<BlockHash> hashes;
  hashes.reserve(ids.size() / size);
  BlockHash hash = mix64(salt);
  for (size_t first = 0; first + size <= ids.size(); first += size) {
    for (const int id : ids.subspan(first, size)) hash = mix64(hash ^ mix64(static_cast<std::uint64_t>(id)));
    hashes.push_back(hash);
  }
  return hashes;
}

std::vector<BlockHash> hash_synthetic_blocks(std::uint64_t shared_seed, int shared, std::uint64_t seed, int len,
                                             int block_size) {
  const int size = std::max(1, block_size);
  std::vector<BlockHash> hashes;
  hashes.reserve(static_cast<size_t>(std::max(0, len) / size));
  BlockHash hash = 0;
  for (int first = 0; first + size <= len; first += size) {
    const int common = shared_seed == seed ? 0 : std::clamp(shared - first, 0, size);  // shared tokens in this block
    if (common > 0) hash = mix64(hash ^ mix64(shared_seed));
    if (common > 0 && common < size) hash = mix64(hash + static_cast<std::uint64_t>(common));
    if (common < size) hash = mix64(hash ^ mix64(seed));
    hashes.push_back(hash = mix64(hash + 1));
  }
  return hashes;
}

}  // namespace mw::serve
