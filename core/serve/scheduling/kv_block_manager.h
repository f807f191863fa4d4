// SPDX-License-Identifier: Apache-2.0
// The paged KV cache as bookkeeping: blocks of groups of layers out of one capacity, shared by prefix, kept after their
// requests until they are the longest unused. A free block keeps its content until it is given away, as in vLLM V1.
// Holds no key and no value. One thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/serve/scheduling/block_hash_map.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

class KvBlockManager {
 public:
  // Throws Error SERVE for a layout without a group, a block or a size.
  KvBlockManager(KvLayout layout, PrefixCache prefix_cache);

  // What one request holds, by group: entry i is the block of tokens [i * block_size, ...), -1 behind a window.
  struct Table {
    std::vector<std::vector<int>> blocks{};  // [group][i]
    std::vector<int> behind{};               // [group]: so many entries at the start are -1
    int named = 0;                           // blocks at the start that the prefix cache was told of
  };
  Table table() const;  // of a request that holds nothing

  // Full blocks at the start of `hashes`, at most `most`, that every group still has (a window's: those in sight).
  int cached_blocks(std::span<const BlockHash> hashes, int most) const;
  // An empty table takes the first `cached` blocks from the prefix cache; then blocks for tokens [computed, tokens) are
  // added and those behind windows freed. False where there is no room: then nothing was taken.
  bool reserve(Table& table, int computed, int tokens, std::span<const BlockHash> hashes = {}, int cached = 0);
  // Blocks [table.named, upto) have these hashes from now on.
  void name(Table& table, std::span<const BlockHash> hashes, int upto);
  void forget(Table& table, int from);  // the names of blocks from `from` on: they will not be computed
  void release(Table& table);           // all of it; what has a name stays until others need the room
  // Whether a request of `tokens` has room when there is no other; its prompt is computed by at most `chunk`.
  bool fits_alone(int prompt, int tokens, int chunk) const;

  void clear_prefix_cache();
  int block_size() const { return layout_.block_size; }
  double used_share() const { return held_bytes_ / layout_.capacity; }  // by requests
  // Counts everything again from the tables of all requests; for tests.
  bool consistent(std::span<const Table* const> tables) const;

 private:
  struct Block {
    BlockHash hash = 0;
    std::uint64_t freed = 0;  // when, in order of freeing
    int users = 0;
    int older = -1, newer = -1;  // in the list of free ones
    bool named = false;
  };
  struct Group {
    KvGroup facts;
    std::vector<Block> blocks{};
    std::vector<int> vacant{};  // ids without a block: their room went to others
    int oldest = -1, newest = -1;
    std::int64_t held = 0;  // by requests
    BlockHashMap by_hash{};
  };
  struct Wish {
    int first = 0, last = 0;  // entries from the prefix cache: [first, cached); new ones: up to last
    std::int64_t more = 0;    // blocks that become held
  };

  int first_in_sight(const Group& group, int computed) const;
  int blocks_of(int tokens) const { return (tokens + layout_.block_size - 1) / layout_.block_size; }
  bool in_cache(const Group& group, std::span<const BlockHash> hashes, int first, int end) const;
  int longest_cached(const Group& group, std::span<const BlockHash> hashes, int most) const;
  bool room_for(std::span<const Wish> wishes) const;
  void prepare(Group& group) const;
  int take(Group& group);
  int share(Group& group, BlockHash hash);
  void evict_oldest(const Group& wanting);
  void free_behind(Table& table, size_t group, int computed);
  void let_go(Group& group, int block);
  void unlink(Group& group, int block);
  void unname(Group& group, int block);

  KvLayout layout_;
  PrefixCache prefix_cache_;
  std::vector<Group> groups_;
  Bytes made_bytes_, held_bytes_;  // of blocks that exist; of those that requests hold
  std::uint64_t clock_ = 0;
};

}  // namespace mw::serve
