// SPDX-License-Identifier: Apache-2.0
// Maps the hash of a block's content to the id of the block. A flat table with linear probing, because allocating a
// cached block erases one entry and caching a block inserts one. Not thread-safe.
#pragma once
#include <algorithm>
#include <vector>

#include "core/serve/scheduling/block_hashes.h"

namespace mw::serve {

class BlockHashMap {
 public:
  // Reserves room for `capacity` entries; beyond that the table grows.
  explicit BlockHashMap(size_t capacity = 0) {
    while (slots_.size() < 2 * capacity) grow();
  }
  int find(BlockHash hash) const {  // -1 if there is no such block
    if (size_ == 0) return -1;
    return slots_[slot_of(hash)].block;
  }
  bool contains(BlockHash hash) const { return find(hash) >= 0; }
  // Returns false and changes nothing if the hash already has a block.
  bool emplace(BlockHash hash, int block) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[slot_of(hash)];
    if (slot.block >= 0) return false;
    slot = {hash, block};
    ++size_;
    return true;
  }
  void erase(BlockHash hash) {
    if (size_ == 0) return;
    size_t hole = slot_of(hash);
    if (slots_[hole].block < 0) return;
    --size_;
    // Entries after the hole whose probe sequence crosses it move into it.
    for (size_t at = next(hole); slots_[at].block >= 0; at = next(at)) {
      const size_t wanted = home(slots_[at].hash);
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].block = -1;
  }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    size_ = 0;
  }
  size_t size() const { return size_; }

 private:
  struct Slot {
    BlockHash hash = 0;
    int block = -1;
  };
  size_t mask() const { return slots_.size() - 1; }  // the size is a power of two; at most half of the slots are used
  size_t next(size_t slot) const { return (slot + 1) & mask(); }
  size_t home(BlockHash hash) const { return static_cast<size_t>((hash * 0x9e3779b97f4a7c15u) >> shift_); }
  size_t slot_of(BlockHash hash) const {  // the slot of the hash, or the free slot where it would be inserted
    size_t slot = home(hash);
    while (slots_[slot].block >= 0 && slots_[slot].hash != hash) slot = next(slot);
    return slot;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 64 : 2 * slots_.size());
    before.swap(slots_);
    shift_ = 64;
    for (size_t n = slots_.size(); n > 1; n /= 2) --shift_;
    for (const Slot& s : before)
      if (s.block >= 0) slots_[slot_of(s.hash)] = s;
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 64;
};

}  // namespace mw::serve
