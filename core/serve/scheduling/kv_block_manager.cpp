// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/kv_block_manager.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace mw::serve {
namespace {

void check(const KvLayout& layout) {
  const auto refuse = [](const char* place, std::string found, std::string expected) {
    throw Error("SERVE", "invalid KV cache layout",
                {.place = place, .found = std::move(found), .expected = std::move(expected)});
  };
  if (layout.block_size < 1) refuse("block_size", std::to_string(layout.block_size), "at least one token");
  if (layout.groups.empty()) refuse("KV groups", "none", "at least one");
  Bytes one_each;
  for (const KvGroup& g : layout.groups) {
    if (g.block_bytes.value < 1 || g.window < 0 || g.max_blocks < 0)
      refuse("KV groups", to_text(g.block_bytes) + " a block, window " + std::to_string(g.window), "sizes above 0");
    one_each += g.block_bytes;
  }
  if (layout.capacity < one_each) refuse("KV cache", to_text(layout.capacity), "at least " + to_text(one_each));
}

}  // namespace

KvBlockManager::KvBlockManager(KvLayout layout, PrefixCache prefix_cache, KvTracking tracking)
    : layout_(std::move(layout)),
      tracking_(tracking),
      prefix_cache_(tracking == KvTracking::counts ? PrefixCache::off : prefix_cache) {
  check(layout_);
  for (const KvGroup& spec : layout_.groups) groups_.push_back({.spec = spec});
}

KvBlockManager::BlockTable KvBlockManager::empty_table() const {
  return {std::vector<std::vector<int>>(tracking_ == KvTracking::counts ? 0 : groups_.size()),
          std::vector<int>(groups_.size())};
}

// The first block that the query at position `computed` attends to.
int KvBlockManager::first_in_window(const Group& group, int computed) const {
  const int window = group.spec.window;
  return window == 0 ? 0 : std::max(0, computed - window + 1) / layout_.block_size;
}

bool KvBlockManager::are_cached(const Group& group, std::span<const BlockHash> hashes, int first, int end) const {
  for (int i = end - 1; i >= first; --i)
    if (!group.by_hash.contains(hashes[static_cast<size_t>(i)])) return false;
  return true;
}

int KvBlockManager::longest_cached_prefix(const Group& group, std::span<const BlockHash> hashes, int max_blocks) const {
  if (group.spec.window == 0) {
    int n = 0;
    while (n < max_blocks && group.by_hash.contains(hashes[static_cast<size_t>(n)])) ++n;
    return n;
  }
  while (max_blocks > 0 &&
         !are_cached(group, hashes, first_in_window(group, max_blocks * layout_.block_size), max_blocks))
    --max_blocks;
  return max_blocks;
}

int KvBlockManager::count_cached_blocks(std::span<const BlockHash> hashes, int max_blocks) const {
  if (prefix_cache_ == PrefixCache::off) return 0;
  int agreed = std::min(max_blocks, static_cast<int>(hashes.size()));
  for (int before = -1; agreed != before;) {  // until every group has the whole prefix
    before = agreed;
    for (const Group& group : groups_) agreed = longest_cached_prefix(group, hashes, agreed);
  }
  return agreed;
}

bool KvBlockManager::has_memory_for(std::span<const Reservation> reservations) const {
  Bytes added;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const KvGroup& spec = groups_[g].spec;
    if (spec.max_blocks > 0 && groups_[g].held + reservations[g].newly_held > spec.max_blocks) return false;
    added += spec.block_bytes * reservations[g].newly_held;
  }
  return held_bytes_ + added <= layout_.capacity;  // free blocks can always be evicted
}

bool KvBlockManager::reserve(BlockTable& table, int computed, int tokens, std::span<const BlockHash> hashes,
                             int cached) {
  if (tracking_ == KvTracking::counts) return reserve_counts(table, computed, tokens);
  std::array<Reservation, 4> few;
  std::vector<Reservation> many(groups_.size() > few.size() ? groups_.size() : 0);
  const std::span<Reservation> reservations(many.empty() ? few.data() : many.data(), groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    evict_behind_window(table, g, computed);
    Reservation& reservation = reservations[g];
    reservation.first_cached = first_in_window(groups_[g], computed);
    reservation.end = std::max(block_count(tokens), static_cast<int>(table.blocks[g].size()));
    reservation.newly_held = reservation.end - std::max(cached, static_cast<int>(table.blocks[g].size()));
    for (int i = reservation.first_cached; i < cached; ++i) {
      const int block = *groups_[g].by_hash.find(hashes[static_cast<size_t>(i)]);
      reservation.newly_held += groups_[g].blocks[static_cast<size_t>(block)].ref_count == 0 ? 1 : 0;
    }
  }
  if (!has_memory_for(reservations)) return false;
  for (size_t g = 0; g < groups_.size(); ++g) {  // shares all cached blocks before allocate_block() evicts any
    std::vector<int>& blocks = table.blocks[g];
    if (cached == 0) continue;
    table.evicted_prefix[g] = reservations[g].first_cached;
    blocks.assign(static_cast<size_t>(reservations[g].first_cached), -1);
    for (int i = reservations[g].first_cached; i < cached; ++i)
      blocks.push_back(share_block(groups_[g], hashes[static_cast<size_t>(i)]));
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int>& blocks = table.blocks[g];
    const auto before = static_cast<std::ptrdiff_t>(blocks.size());
    while (static_cast<int>(blocks.size()) < reservations[g].end) blocks.push_back(allocate_block(groups_[g]));
    std::sort(blocks.begin() + before, blocks.end());  // restores contiguous runs
  }
  table.hashed_blocks = std::max(table.hashed_blocks, cached);
  return true;
}

bool KvBlockManager::reserve_counts(BlockTable& table, int computed, int tokens) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int end = std::min(first_in_window(groups_[g], computed), table.counted);
    hold(groups_[g], -std::max(0, end - table.evicted_prefix[g]));
    table.evicted_prefix[g] = std::max(end, table.evicted_prefix[g]);
  }
  const int added = std::max(block_count(tokens), table.counted) - table.counted;
  Bytes held = held_bytes_;
  for (const Group& group : groups_) {
    if (group.spec.max_blocks > 0 && group.held + added > group.spec.max_blocks) return false;
    held += group.spec.block_bytes * added;
  }
  if (held > layout_.capacity) return false;
  for (Group& group : groups_) hold(group, added);
  table.counted += added;
  return true;
}

void KvBlockManager::hold(Group& group, std::int64_t blocks) {
  group.held += blocks;
  held_bytes_ += group.spec.block_bytes * blocks;
}

void KvBlockManager::evict_behind_window(BlockTable& table, size_t group, int computed) {
  std::vector<int>& blocks = table.blocks[group];
  const int end = std::min(first_in_window(groups_[group], computed), static_cast<int>(blocks.size()));
  for (int& i = table.evicted_prefix[group]; i < end; ++i) {
    release_block(groups_[group], blocks[static_cast<size_t>(i)]);
    blocks[static_cast<size_t>(i)] = -1;
  }
}

// Reserves the tables for all blocks at once; otherwise memory would grow until every block has been used.
void KvBlockManager::preallocate(Group& group) const {
  const auto max_blocks = static_cast<size_t>(group.spec.max_blocks);
  group.blocks.reserve(max_blocks);
  if (prefix_cache_ == PrefixCache::on) group.by_hash.reserve(max_blocks);
}

// Takes unused capacity or evicts the least recently used free blocks. has_memory_for() must have returned true.
int KvBlockManager::allocate_block(Group& group) {
  const auto full = [&] {
    const std::int64_t allocated = static_cast<std::int64_t>(group.blocks.size() - group.vacant_ids.size());
    return group.spec.max_blocks > 0 && allocated >= group.spec.max_blocks;
  };
  while (full() || allocated_bytes_ + group.spec.block_bytes > layout_.capacity) evict_oldest(group);
  if (group.vacant_ids.empty()) {
    if (group.blocks.empty()) preallocate(group);
    group.vacant_ids.push_back(static_cast<int>(group.blocks.size()));
    group.blocks.emplace_back();
  }
  const int block = group.vacant_ids.back();
  group.vacant_ids.pop_back();
  group.blocks[static_cast<size_t>(block)].ref_count = 1;
  allocated_bytes_ += group.spec.block_bytes, held_bytes_ += group.spec.block_bytes;
  ++group.held;
  return block;
}

int KvBlockManager::share_block(Group& group, BlockHash hash) {
  const int block = *group.by_hash.find(hash);
  if (group.blocks[static_cast<size_t>(block)].ref_count++ == 0) {
    unlink_free(group, block);
    held_bytes_ += group.spec.block_bytes;
    ++group.held;
  }
  return block;
}

// Deallocates the least recently used free block: of any group if the capacity is exhausted, otherwise of `wanting`.
void KvBlockManager::evict_oldest(const Group& wanting) {
  const bool any_group = allocated_bytes_ + wanting.spec.block_bytes > layout_.capacity;
  Group* from = nullptr;
  const auto age = [](const Group& g) { return g.blocks[static_cast<size_t>(g.oldest)].freed_at; };
  for (Group& g : groups_)
    if (g.oldest >= 0 && (any_group || &g == &wanting) && (!from || age(g) < age(*from))) from = &g;
  const int block = from->oldest;
  unlink_free(*from, block);
  uncache_block(*from, block);
  from->vacant_ids.push_back(block);
  allocated_bytes_ -= from->spec.block_bytes;
}

void KvBlockManager::release_block(Group& group, int block) {
  Block& b = group.blocks[static_cast<size_t>(block)];
  if (--b.ref_count > 0) return;
  b.freed_at = ++clock_;
  b.older = group.newest, b.newer = -1;
  if (group.newest >= 0) group.blocks[static_cast<size_t>(group.newest)].newer = block;
  if (group.oldest < 0) group.oldest = block;
  group.newest = block;
  held_bytes_ -= group.spec.block_bytes;
  --group.held;
}

void KvBlockManager::unlink_free(Group& group, int block) {
  Block& b = group.blocks[static_cast<size_t>(block)];
  (b.older >= 0 ? group.blocks[static_cast<size_t>(b.older)].newer : group.oldest) = b.newer;
  (b.newer >= 0 ? group.blocks[static_cast<size_t>(b.newer)].older : group.newest) = b.older;
  b.older = b.newer = -1;
}

void KvBlockManager::uncache_block(Group& group, int block) {
  Block& b = group.blocks[static_cast<size_t>(block)];
  if (b.is_cached) group.by_hash.erase(b.hash);
  b.is_cached = false;
}

void KvBlockManager::cache_blocks(BlockTable& table, std::span<const BlockHash> hashes, int end) {
  if (prefix_cache_ == PrefixCache::off) return;
  for (size_t g = 0; g < groups_.size(); ++g)
    for (int i = std::max(table.hashed_blocks, table.evicted_prefix[g]); i < end; ++i) {
      const BlockHash hash = hashes[static_cast<size_t>(i)];
      const int block = table.blocks[g][static_cast<size_t>(i)];
      if (!groups_[g].by_hash.insert(hash, block)) continue;  // another request computed the same block
      groups_[g].blocks[static_cast<size_t>(block)].hash = hash;
      groups_[g].blocks[static_cast<size_t>(block)].is_cached = true;
    }
  table.hashed_blocks = std::max(table.hashed_blocks, end);
}

void KvBlockManager::uncache_blocks(BlockTable& table, int first) {
  for (size_t g = 0; g < groups_.size(); ++g)
    for (int i = std::max(first, table.evicted_prefix[g]); i < table.hashed_blocks; ++i)
      uncache_block(groups_[g], table.blocks[g][static_cast<size_t>(i)]);
  table.hashed_blocks = std::min(table.hashed_blocks, first);
}

void KvBlockManager::release(BlockTable& table) {
  if (tracking_ == KvTracking::counts) {
    for (size_t g = 0; g < groups_.size(); ++g) hold(groups_[g], table.evicted_prefix[g] - table.counted);
    table = empty_table();
    return;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int>& blocks = table.blocks[g];
    for (; static_cast<int>(blocks.size()) > table.evicted_prefix[g]; blocks.pop_back())
      release_block(groups_[g], blocks.back());
    blocks.clear();  // back to front: the ends of prompts are evicted first
    table.evicted_prefix[g] = 0;
  }
  table.hashed_blocks = 0;
}

bool KvBlockManager::fits_alone(int prompt, int tokens, int chunk) const {
  Bytes all;
  for (const Group& group : groups_) {
    const int window = group.spec.window;
    std::int64_t max_blocks = block_count(tokens);
    if (window > 0) {
      max_blocks = std::min(block_count(tokens), block_count(window - 1) + 1);  // while it decodes
      for (int at = 0; at < prompt; at += chunk)
        max_blocks =
            std::max<std::int64_t>(max_blocks, block_count(std::min(prompt, at + chunk)) - first_in_window(group, at));
    }
    if (group.spec.max_blocks > 0 && max_blocks > group.spec.max_blocks) return false;
    all += group.spec.block_bytes * max_blocks;
  }
  return all <= layout_.capacity;
}

void KvBlockManager::clear_prefix_cache() {
  for (Group& group : groups_) {
    for (Block& block : group.blocks) block.is_cached = false;
    group.by_hash.clear();
  }
}

}  // namespace mw::serve
