// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/kv_block_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/rng.h"

namespace mw::serve {

// Recounts references, free lists, hashes and bytes from the tables of all requests.
struct KvBlockInvariants {
  static bool hold(const KvBlockManager& blocks, std::span<const KvBlockManager::BlockTable* const> tables) {
    Bytes allocated, held;
    for (size_t g = 0; g < blocks.groups_.size(); ++g) {
      const KvBlockManager::Group& group = blocks.groups_[g];
      std::vector<int> references(group.blocks.size(), 0);
      for (const KvBlockManager::BlockTable* table : tables)
        for (const int block : table->blocks[g])
          if (block >= 0) ++references[static_cast<size_t>(block)];
      std::int64_t in_use = 0, free = 0, cached = 0;
      for (size_t i = 0; i < references.size(); ++i) {
        const KvBlockManager::Block& block = group.blocks[i];
        if (references[i] != block.ref_count) return false;
        in_use += references[i] > 0 ? 1 : 0;
        cached += block.is_cached ? 1 : 0;
        if (block.is_cached && *group.by_hash.find(block.hash) != static_cast<int>(i)) return false;
      }
      for (int i = group.oldest; i >= 0; i = group.blocks[static_cast<size_t>(i)].newer) ++free;
      const auto exist = static_cast<std::int64_t>(group.blocks.size() - group.vacant_ids.size());
      if (in_use != group.held || in_use + free != exist) return false;
      if (cached != static_cast<std::int64_t>(group.by_hash.size())) return false;
      if (group.spec.max_blocks > 0 && static_cast<int>(group.blocks.size()) > group.spec.max_blocks) return false;
      allocated += group.spec.block_bytes * exist;
      held += group.spec.block_bytes * in_use;
    }
    return allocated == blocks.allocated_bytes_ && held == blocks.held_bytes_ && allocated <= blocks.layout_.capacity;
  }
};

namespace {

KvLayout layout(std::vector<KvGroup> groups, std::int64_t capacity, int block_size = 4) {
  return {.block_size = block_size, .groups = std::move(groups), .capacity = Bytes(capacity)};
}
KvGroup full(std::int64_t bytes = 1, int most = 0) {
  return {.window = 0, .block_bytes = Bytes(bytes), .max_blocks = most};
}
KvGroup sliding(int window, std::int64_t bytes = 1) {
  return {.window = window, .block_bytes = Bytes(bytes)};
}

// Computes, caches and releases a prompt of full blocks with these hashes.
void compute_and_release(KvBlockManager& blocks, const std::vector<BlockHash>& hashes) {
  const int n = static_cast<int>(hashes.size());
  auto table = blocks.empty_table();
  ASSERT_TRUE(blocks.reserve(table, 0, n * blocks.block_size(), hashes));
  blocks.cache_blocks(table, hashes, n);
  blocks.release(table);
}

TEST(KvBlockManager, AllocatesOneBlockPerBlockSizeTokens) {
  KvBlockManager blocks(layout({full()}, 10), PrefixCache::off);
  auto table = blocks.empty_table();
  for (int computed = 0; computed < 40; ++computed) {
    ASSERT_TRUE(blocks.reserve(table, computed, computed + 1));
    EXPECT_EQ(table.blocks[0].size(), static_cast<size_t>(computed / 4 + 1));
  }
  EXPECT_FALSE(blocks.reserve(table, 40, 41));
  EXPECT_EQ(table.blocks[0].size(), 10u) << "a failed reservation allocates nothing";
  EXPECT_DOUBLE_EQ(blocks.used_fraction(), 1);
  blocks.release(table);
  EXPECT_EQ(blocks.used_fraction(), 0);
}

TEST(KvBlockManager, EvictsLeastRecentlyUsedBlocksAndEndsOfPromptsFirst) {
  KvBlockManager blocks(layout({full()}, 6), PrefixCache::on);
  const std::vector<BlockHash> a{1, 2}, b{3, 4}, c{5, 6};
  compute_and_release(blocks, a), compute_and_release(blocks, b), compute_and_release(blocks, c);
  auto again = blocks.empty_table();
  ASSERT_TRUE(blocks.reserve(again, 8, 8, a, 2));  // uses a again, so b is the least recently used
  blocks.release(again);
  auto other = blocks.empty_table();
  ASSERT_TRUE(blocks.reserve(other, 0, 4));
  EXPECT_EQ(blocks.count_cached_blocks(b, 2), 1);
  ASSERT_TRUE(blocks.reserve(other, 4, 12));
  EXPECT_EQ(blocks.count_cached_blocks(b, 2), 0);
  EXPECT_EQ(blocks.count_cached_blocks(c, 2), 1);
  EXPECT_EQ(blocks.count_cached_blocks(a, 2), 2);
  blocks.clear_prefix_cache();
  EXPECT_EQ(blocks.count_cached_blocks(a, 2), 0);
}

TEST(KvBlockManager, CountsSharedBlocksOnceAndFreesThemWithTheLastReference) {
  KvBlockManager blocks(layout({full()}, 4), PrefixCache::on);
  const std::vector<BlockHash> prompt{1, 2, 3};
  auto a = blocks.empty_table(), b = blocks.empty_table();
  ASSERT_TRUE(blocks.reserve(a, 0, 12, prompt));
  blocks.cache_blocks(a, prompt, 3);
  ASSERT_TRUE(blocks.reserve(b, 12, 13, prompt, 3));
  EXPECT_EQ(a.blocks[0][2], b.blocks[0][2]);
  EXPECT_DOUBLE_EQ(blocks.used_fraction(), 1);
  blocks.release(a);
  EXPECT_DOUBLE_EQ(blocks.used_fraction(), 1);
  blocks.release(b);
  EXPECT_EQ(blocks.used_fraction(), 0);
}

TEST(KvBlockManager, DoesNotEvictTheCachedPrefixItIsAboutToShare) {
  KvBlockManager blocks(layout({full()}, 4), PrefixCache::on);
  const std::vector<BlockHash> prompt{1, 2, 3};
  compute_and_release(blocks, prompt);
  auto table = blocks.empty_table();
  EXPECT_FALSE(blocks.reserve(table, 12, 21, prompt, 3)) << "3 cached and 3 new blocks exceed the capacity of 4";
  EXPECT_EQ(blocks.count_cached_blocks(prompt, 3), 3) << "a failed reservation evicts nothing";
  EXPECT_TRUE(blocks.reserve(table, 12, 16, prompt, 3));
}

TEST(KvBlockManager, EvictsBlocksBehindTheWindowAndHitsWithoutThem) {
  KvBlockManager blocks(layout({full(), sliding(8)}, 100), PrefixCache::on);
  const std::vector<BlockHash> prompt{1, 2, 3, 4, 5, 6};
  auto table = blocks.empty_table();
  ASSERT_TRUE(blocks.reserve(table, 0, 24, prompt));
  blocks.cache_blocks(table, prompt, 6);
  ASSERT_TRUE(blocks.reserve(table, 24, 25));
  EXPECT_EQ(table.evicted_prefix[1], 4) << "query 24 attends to 17 .. 24";
  EXPECT_EQ(table.blocks[1][3], -1);
  EXPECT_GE(table.blocks[1][4], 0);
  EXPECT_EQ(table.evicted_prefix[0], 0);
  blocks.release(table);
  auto next = blocks.empty_table();
  EXPECT_EQ(blocks.count_cached_blocks(prompt, 6), 6);
  ASSERT_TRUE(blocks.reserve(next, 24, 25, prompt, 6));
  EXPECT_EQ(next.blocks[1],
            (std::vector<int>{-1, -1, -1, -1, next.blocks[1][4], next.blocks[1][5], next.blocks[1][6]}));
  EXPECT_EQ(next.blocks[0].size(), 7u);
  EXPECT_EQ(blocks.used_fraction(), (7 + 3) / 100.0);
}

TEST(KvBlockManager, LimitsCacheHitToWhatEveryGroupHas) {
  // The capacity is 8 blocks. The sliding group's first blocks were freed first and are evicted first.
  KvBlockManager blocks(layout({full(), sliding(5)}, 8), PrefixCache::on);
  const std::vector<BlockHash> prompt{1, 2, 3, 4};
  compute_and_release(blocks, prompt);
  auto other = blocks.empty_table();
  ASSERT_TRUE(blocks.reserve(other, 0, 8, std::vector<BlockHash>{}));  // evicts the ends of the prompt
  EXPECT_EQ(blocks.count_cached_blocks(prompt, 4), 0) << "the full group has none of the four blocks left";
}

TEST(KvBlockManager, FitsAloneAgreesWithReserveOnAnEmptyCache) {
  Rng rng{3};
  for (int i = 0; i < 3000; ++i) {
    const int window = static_cast<int>(1 + rng.below(40)), block = static_cast<int>(1 + rng.below(9));
    const int prompt = static_cast<int>(1 + rng.below(60)), tokens = prompt + static_cast<int>(rng.below(60));
    const int chunk = static_cast<int>(1 + rng.below(50));
    const KvLayout wanted = layout({sliding(window)}, static_cast<std::int64_t>(1 + rng.below(30)), block);
    KvBlockManager blocks(wanted, PrefixCache::off);
    auto table = blocks.empty_table();
    bool fits = true;
    for (int at = 0; at < tokens && fits;) {
      const int count = at < prompt ? std::min(chunk, prompt - at) : 1;
      fits = blocks.reserve(table, at, at + count);
      at += count;
    }
    if (blocks.fits_alone(prompt, tokens, chunk)) {
      EXPECT_TRUE(fits);
    }
    // fits_alone() may overestimate by the one extra block of an unaligned window.
    if (fits && !blocks.fits_alone(prompt, tokens, chunk)) {
      KvLayout larger = wanted;
      larger.capacity += Bytes(1);
      EXPECT_TRUE(KvBlockManager(larger, PrefixCache::off).fits_alone(prompt, tokens, chunk));
    }
  }
}

TEST(KvBlockManager, KeepsInvariantsUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng{seed};
    std::vector<KvGroup> groups{full(3, rng.below(2) ? 25 : 0)};
    if (rng.below(2)) groups.push_back(sliding(static_cast<int>(1 + rng.below(20)), 2));
    const PrefixCache cache = rng.below(4) ? PrefixCache::on : PrefixCache::off;
    KvBlockManager blocks(layout(groups, 120), cache);
    struct Held {
      KvBlockManager::BlockTable table;
      int computed = 0;
      std::vector<BlockHash> hashes;
    };
    std::map<int, Held> held;
    int next = 0, hits = 0;
    for (int step = 0; step < 1500; ++step) {
      const auto action = rng.below(10);
      if (action < 3) {
        Held h{blocks.empty_table(), 0, {}};
        const BlockHash family = 1000 * (1 + rng.below(4));
        for (std::uint64_t i = 0, n = rng.below(8); i < n; ++i) h.hashes.push_back(family + i);
        const int cached = blocks.count_cached_blocks(h.hashes, static_cast<int>(h.hashes.size()));
        const int tokens = 4 * static_cast<int>(h.hashes.size()) + static_cast<int>(1 + rng.below(4));
        if (blocks.reserve(h.table, 4 * cached, tokens, h.hashes, cached)) {
          hits += cached;
          h.computed = tokens;
          blocks.cache_blocks(h.table, h.hashes, static_cast<int>(h.hashes.size()));
          held.emplace(next++, std::move(h));
        }
      } else if (!held.empty()) {
        auto at = std::next(held.begin(), static_cast<std::ptrdiff_t>(rng.below(held.size())));
        if (action < 8) {
          const int more = static_cast<int>(1 + rng.below(6));
          if (blocks.reserve(at->second.table, at->second.computed, at->second.computed + more))
            at->second.computed += more;
        } else {
          if (action == 9) blocks.uncache_blocks(at->second.table, static_cast<int>(rng.below(4)));
          blocks.release(at->second.table);
          held.erase(at);
        }
      }
      if (rng.below(200) == 0) blocks.clear_prefix_cache();
      std::vector<const KvBlockManager::BlockTable*> tables;
      for (const auto& [id, h] : held) tables.push_back(&h.table);
      ASSERT_TRUE(KvBlockInvariants::hold(blocks, tables)) << "seed " << seed << " step " << step;
    }
    EXPECT_EQ(hits > 0, cache == PrefixCache::on);
    for (auto& [id, h] : held) blocks.release(h.table);
    EXPECT_EQ(blocks.used_fraction(), 0);
    EXPECT_TRUE(KvBlockInvariants::hold(blocks, {}));
  }
}

TEST(KvBlockManager, RejectsLayoutsWithoutCapacity) {
  EXPECT_THROW(KvBlockManager(layout({}, 10), PrefixCache::on), Error);
  EXPECT_THROW(KvBlockManager(layout({full(0)}, 10), PrefixCache::on), Error);
  EXPECT_THROW(KvBlockManager(layout({full(11)}, 10), PrefixCache::on), Error);
  EXPECT_THROW(KvBlockManager(layout({full(6), full(6)}, 10), PrefixCache::on), Error);
  EXPECT_THROW(KvBlockManager(layout({full()}, 10, 0), PrefixCache::on), Error);
}

}  // namespace
}  // namespace mw::serve
