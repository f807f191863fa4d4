// SPDX-License-Identifier: Apache-2.0
// Block accounting of a paged KV cache. Groups of layers share one capacity in bytes, requests share blocks of equal
// prefixes, and a free block keeps its content until its memory is reallocated, least recently used first, as in vLLM
// V1 (vllm/v1/core/kv_cache_manager.py). Stores no keys and no values. Not thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/flat_map.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

class KvBlockManager {
 public:
  // Throws Error SERVE for a layout without groups, without capacity or with sizes below 1.
  KvBlockManager(KvLayout layout, PrefixCache prefix_cache, KvTracking tracking = KvTracking::blocks);

  // The blocks of one request. Entry i of a group holds tokens [i * block_size, ...); -1: evicted behind the window.
  struct BlockTable {
    std::vector<std::vector<int>> blocks{};  // [group][i]; empty with KvTracking::counts
    std::vector<int> evicted_prefix{};       // [group]: number of leading entries that are -1
    int hashed_blocks = 0;                   // number of leading blocks that the prefix cache knows by their hash
    int counted = 0;                         // entries of every group with KvTracking::counts
  };
  BlockTable empty_table() const;

  // Number of leading blocks, at most `max_blocks`, that every group has in the prefix cache; a sliding group needs
  // only those inside its window.
  int count_cached_blocks(std::span<const BlockHash> hashes, int max_blocks) const;
  // Allocates blocks for tokens [computed, tokens) and evicts those behind the windows. An empty table first takes its
  // leading `cached` blocks from the prefix cache. Returns false, with nothing allocated, if there is not enough
  // memory.
  bool reserve(BlockTable& table, int computed, int tokens, std::span<const BlockHash> hashes = {}, int cached = 0);
  // Enters blocks [table.hashed_blocks, end) into the prefix cache under their hashes.
  void cache_blocks(BlockTable& table, std::span<const BlockHash> hashes, int end);
  // Removes blocks from `first` on from the prefix cache, because they will not be computed.
  void uncache_blocks(BlockTable& table, int first);
  // Frees all blocks of the request. Cached blocks can be found until their memory is reallocated.
  void release(BlockTable& table);
  // Whether an otherwise empty cache can hold a request of `tokens` tokens whose prompt is computed `chunk` at a time.
  bool fits_alone(int prompt, int tokens, int chunk) const;

  void clear_prefix_cache();
  int block_size() const { return layout_.block_size; }
  double used_fraction() const { return held_bytes_ / layout_.capacity; }  // held by requests, 0..1

 private:
  friend struct KvBlockInvariants;  // the tests recount all blocks

  struct Block {
    BlockHash hash = 0;
    std::uint64_t freed_at = 0;  // clock_ when it was freed
    int ref_count = 0;
    int older = -1, newer = -1;  // neighbours in the free list
    bool is_cached = false;      // by_hash has it under `hash`
  };
  struct Group {
    KvGroup spec;
    std::vector<Block> blocks{};
    std::vector<int> vacant_ids{};  // ids whose memory was given to other blocks
    int oldest = -1, newest = -1;   // ends of the free list
    std::int64_t held = 0;          // blocks that requests hold
    FlatMap<int> by_hash{};         // BlockHash -> id of the block
  };
  struct Reservation {  // of one group
    int first_cached = 0,
        end = 0;  // entries [first_cached, cached) come from the prefix cache; new ones follow up to end
    std::int64_t newly_held = 0;  // blocks that become held
  };

  int first_in_window(const Group& group, int computed) const;
  int block_count(int tokens) const { return (tokens + layout_.block_size - 1) / layout_.block_size; }
  bool are_cached(const Group& group, std::span<const BlockHash> hashes, int first, int end) const;
  int longest_cached_prefix(const Group& group, std::span<const BlockHash> hashes, int max_blocks) const;
  bool has_memory_for(std::span<const Reservation> reservations) const;
  bool reserve_counts(BlockTable& table, int computed, int tokens);
  void hold(Group& group, std::int64_t blocks);  // with KvTracking::counts; less if negative
  void preallocate(Group& group) const;
  int allocate_block(Group& group);
  int share_block(Group& group, BlockHash hash);
  void evict_oldest(const Group& wanting);
  void evict_behind_window(BlockTable& table, size_t group, int computed);
  void release_block(Group& group, int block);
  void unlink_free(Group& group, int block);
  void uncache_block(Group& group, int block);

  KvLayout layout_;
  KvTracking tracking_;
  PrefixCache prefix_cache_;
  std::vector<Group> groups_;
  Bytes allocated_bytes_, held_bytes_;  // of all blocks, including free ones; of blocks that requests hold
  std::uint64_t clock_ = 0;
};

}  // namespace mw::serve
