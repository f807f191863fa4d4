// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/kv_block_manager.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace mw::serve {
namespace {

void check(const KvLayout& layout) {
  const auto refuse = [](const char* place, std::string found, std::string expected) {
    throw Error({.id = "SERVE",
                 .message = "no KV cache can be laid out like this",
                 .place = place,
                 .found = std::move(found),
                 .expected = std::move(expected)});
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

KvBlockManager::KvBlockManager(KvLayout layout, PrefixCache prefix_cache)
    : layout_(std::move(layout)), prefix_cache_(prefix_cache) {
  check(layout_);
  for (const KvGroup& facts : layout_.groups) groups_.push_back({.facts = facts});
}

KvBlockManager::Table KvBlockManager::table() const {
  return {std::vector<std::vector<int>>(groups_.size()), std::vector<int>(groups_.size())};
}

// The first block that the query after `computed` tokens sees.
int KvBlockManager::first_in_sight(const Group& group, int computed) const {
  const int window = group.facts.window;
  return window == 0 ? 0 : std::max(0, computed - window + 1) / layout_.block_size;
}

bool KvBlockManager::in_cache(const Group& group, std::span<const BlockHash> hashes, int first, int end) const {
  for (int i = end - 1; i >= first; --i)
    if (!group.by_hash.contains(hashes[static_cast<size_t>(i)])) return false;
  return true;
}

int KvBlockManager::longest_cached(const Group& group, std::span<const BlockHash> hashes, int most) const {
  if (group.facts.window == 0) {
    int n = 0;
    while (n < most && group.by_hash.contains(hashes[static_cast<size_t>(n)])) ++n;
    return n;
  }
  while (most > 0 && !in_cache(group, hashes, first_in_sight(group, most * layout_.block_size), most)) --most;
  return most;
}

int KvBlockManager::cached_blocks(std::span<const BlockHash> hashes, int most) const {
  if (prefix_cache_ == PrefixCache::off) return 0;
  int agreed = std::min(most, static_cast<int>(hashes.size()));
  for (int before = -1; agreed != before;) {  // until no group needs it shorter
    before = agreed;
    for (const Group& group : groups_) agreed = longest_cached(group, hashes, agreed);
  }
  return agreed;
}

bool KvBlockManager::room_for(std::span<const Wish> wishes) const {
  Bytes more;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const KvGroup& facts = groups_[g].facts;
    if (facts.max_blocks > 0 && groups_[g].held + wishes[g].more > facts.max_blocks) return false;
    more += facts.block_bytes * wishes[g].more;
  }
  return held_bytes_ + more <= layout_.capacity;  // free ones give way, named or not
}

bool KvBlockManager::reserve(Table& table, int computed, int tokens, std::span<const BlockHash> hashes, int cached) {
  std::array<Wish, 4> few;
  std::vector<Wish> many(groups_.size() > few.size() ? groups_.size() : 0);
  const std::span<Wish> wishes(many.empty() ? few.data() : many.data(), groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    free_behind(table, g, computed);
    Wish& wish = wishes[g];
    wish.first = first_in_sight(groups_[g], computed);
    wish.last = std::max(blocks_of(tokens), static_cast<int>(table.blocks[g].size()));
    wish.more = wish.last - std::max(cached, static_cast<int>(table.blocks[g].size()));
    for (int i = wish.first; i < cached; ++i) {
      const int block = groups_[g].by_hash.find(hashes[static_cast<size_t>(i)]);
      wish.more += groups_[g].blocks[static_cast<size_t>(block)].users == 0 ? 1 : 0;
    }
  }
  if (!room_for(wishes)) return false;
  for (size_t g = 0; g < groups_.size(); ++g) {  // all of the cached ones before any may be evicted
    std::vector<int>& blocks = table.blocks[g];
    if (cached == 0) continue;
    table.behind[g] = wishes[g].first;
    blocks.assign(static_cast<size_t>(wishes[g].first), -1);
    for (int i = wishes[g].first; i < cached; ++i) blocks.push_back(share(groups_[g], hashes[static_cast<size_t>(i)]));
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int>& blocks = table.blocks[g];
    const auto before = static_cast<std::ptrdiff_t>(blocks.size());
    while (static_cast<int>(blocks.size()) < wishes[g].last) blocks.push_back(take(groups_[g]));
    std::sort(blocks.begin() + before, blocks.end());  // what was freed together lies side by side again
  }
  table.named = std::max(table.named, cached);
  return true;
}

void KvBlockManager::free_behind(Table& table, size_t group, int computed) {
  std::vector<int>& blocks = table.blocks[group];
  const int end = std::min(first_in_sight(groups_[group], computed), static_cast<int>(blocks.size()));
  for (int& i = table.behind[group]; i < end; ++i) {
    let_go(groups_[group], blocks[static_cast<size_t>(i)]);
    blocks[static_cast<size_t>(i)] = -1;
  }
}

// So that a server's memory does not creep up until the last of its blocks has been used once.
void KvBlockManager::prepare(Group& group) const {
  const auto most = static_cast<size_t>(group.facts.max_blocks);
  group.blocks.reserve(most);
  if (prefix_cache_ == PrefixCache::on) group.by_hash = BlockHashMap(most);
}

// A block for one user, of the room that is left or of what has been free the longest. There is one: room_for().
int KvBlockManager::take(Group& group) {
  const auto full = [&] {
    const std::int64_t made = static_cast<std::int64_t>(group.blocks.size() - group.vacant.size());
    return group.facts.max_blocks > 0 && made >= group.facts.max_blocks;
  };
  while (full() || made_bytes_ + group.facts.block_bytes > layout_.capacity) evict_oldest(group);
  if (group.vacant.empty()) {
    if (group.blocks.empty()) prepare(group);
    group.vacant.push_back(static_cast<int>(group.blocks.size()));
    group.blocks.emplace_back();
  }
  const int block = group.vacant.back();
  group.vacant.pop_back();
  group.blocks[static_cast<size_t>(block)].users = 1;
  made_bytes_ += group.facts.block_bytes, held_bytes_ += group.facts.block_bytes;
  ++group.held;
  return block;
}

int KvBlockManager::share(Group& group, BlockHash hash) {
  const int block = group.by_hash.find(hash);
  if (group.blocks[static_cast<size_t>(block)].users++ == 0) {
    unlink(group, block);
    held_bytes_ += group.facts.block_bytes;
    ++group.held;
  }
  return block;
}

// The block that has been free the longest gives its room back: any group's where bytes are short, else `wanting`'s.
void KvBlockManager::evict_oldest(const Group& wanting) {
  const bool bytes = made_bytes_ + wanting.facts.block_bytes > layout_.capacity;
  Group* from = nullptr;
  const auto age = [](const Group& g) { return g.blocks[static_cast<size_t>(g.oldest)].freed; };
  for (Group& g : groups_)
    if (g.oldest >= 0 && (bytes || &g == &wanting) && (!from || age(g) < age(*from))) from = &g;
  const int block = from->oldest;
  unlink(*from, block);
  unname(*from, block);
  from->vacant.push_back(block);
  made_bytes_ -= from->facts.block_bytes;
}

void KvBlockManager::let_go(Group& group, int block) {
  Block& b = group.blocks[static_cast<size_t>(block)];
  if (--b.users > 0) return;
  b.freed = ++clock_;
  b.older = group.newest, b.newer = -1;
  if (group.newest >= 0) group.blocks[static_cast<size_t>(group.newest)].newer = block;
  if (group.oldest < 0) group.oldest = block;
  group.newest = block;
  held_bytes_ -= group.facts.block_bytes;
  --group.held;
}

void KvBlockManager::unlink(Group& group, int block) {
  Block& b = group.blocks[static_cast<size_t>(block)];
  (b.older >= 0 ? group.blocks[static_cast<size_t>(b.older)].newer : group.oldest) = b.newer;
  (b.newer >= 0 ? group.blocks[static_cast<size_t>(b.newer)].older : group.newest) = b.older;
  b.older = b.newer = -1;
}

void KvBlockManager::unname(Group& group, int block) {
  Block& b = group.blocks[static_cast<size_t>(block)];
  if (b.named) group.by_hash.erase(b.hash);
  b.named = false;
}

void KvBlockManager::name(Table& table, std::span<const BlockHash> hashes, int upto) {
  if (prefix_cache_ == PrefixCache::off) return;
  for (size_t g = 0; g < groups_.size(); ++g)
    for (int i = std::max(table.named, table.behind[g]); i < upto; ++i) {
      const BlockHash hash = hashes[static_cast<size_t>(i)];
      const int block = table.blocks[g][static_cast<size_t>(i)];
      if (!groups_[g].by_hash.emplace(hash, block)) continue;  // another request computed the same
      groups_[g].blocks[static_cast<size_t>(block)].hash = hash;
      groups_[g].blocks[static_cast<size_t>(block)].named = true;
    }
  table.named = std::max(table.named, upto);
}

void KvBlockManager::forget(Table& table, int from) {
  for (size_t g = 0; g < groups_.size(); ++g)
    for (int i = std::max(from, table.behind[g]); i < table.named; ++i)
      unname(groups_[g], table.blocks[g][static_cast<size_t>(i)]);
  table.named = std::min(table.named, from);
}

void KvBlockManager::release(Table& table) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int>& blocks = table.blocks[g];
    for (; static_cast<int>(blocks.size()) > table.behind[g]; blocks.pop_back()) let_go(groups_[g], blocks.back());
    blocks.clear();  // the ends of prompts go first when room is needed, their beginnings last
    table.behind[g] = 0;
  }
  table.named = 0;
}

bool KvBlockManager::fits_alone(int prompt, int tokens, int chunk) const {
  Bytes all;
  for (const Group& group : groups_) {
    const int window = group.facts.window;
    std::int64_t most = blocks_of(tokens);
    if (window > 0) {
      most = std::min(blocks_of(tokens), blocks_of(window - 1) + 1);  // while it decodes
      for (int at = 0; at < prompt; at += chunk)
        most = std::max<std::int64_t>(most, blocks_of(std::min(prompt, at + chunk)) - first_in_sight(group, at));
    }
    if (group.facts.max_blocks > 0 && most > group.facts.max_blocks) return false;
    all += group.facts.block_bytes * most;
  }
  return all <= layout_.capacity;
}

void KvBlockManager::clear_prefix_cache() {
  for (Group& group : groups_) {
    for (Block& block : group.blocks) block.named = false;
    group.by_hash.clear();
  }
}

bool KvBlockManager::consistent(std::span<const Table* const> tables) const {
  Bytes made, held;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    std::vector<int> users(group.blocks.size(), 0);
    for (const Table* table : tables)
      for (const int block : table->blocks[g])
        if (block >= 0) ++users[static_cast<size_t>(block)];
    std::int64_t in_use = 0, free = 0, named = 0;
    for (size_t i = 0; i < users.size(); ++i) {
      if (users[i] != group.blocks[i].users) return false;
      in_use += users[i] > 0 ? 1 : 0;
      named += group.blocks[i].named ? 1 : 0;
      if (group.blocks[i].named && group.by_hash.find(group.blocks[i].hash) != static_cast<int>(i)) return false;
    }
    for (int i = group.oldest; i >= 0; i = group.blocks[static_cast<size_t>(i)].newer) ++free;
    const auto exist = static_cast<std::int64_t>(group.blocks.size() - group.vacant.size());
    if (in_use != group.held || in_use + free != exist) return false;
    if (named != static_cast<std::int64_t>(group.by_hash.size())) return false;
    if (group.facts.max_blocks > 0 && static_cast<int>(group.blocks.size()) > group.facts.max_blocks) return false;
    made += group.facts.block_bytes * exist;
    held += group.facts.block_bytes * in_use;
  }
  return made == made_bytes_ && held == held_bytes_ && made <= layout_.capacity;
}

}  // namespace mw::serve
