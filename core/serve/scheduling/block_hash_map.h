// SPDX-License-Identifier: Apache-2.0
// Which block has the content of a hash: a flat table of open addresses, as every block that is given away again is
// looked up, entered and taken out. One thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

class BlockHashMap {
 public:
  explicit BlockHashMap(size_t most = 0) {  // that it will hold, where that is known: it never grows then
    while (slots_.size() < 2 * most) grow();
  }
  int find(BlockHash hash) const {  // -1: none
    if (size_ == 0) return -1;
    return slots_[slot_of(hash)].block;
  }
  bool contains(BlockHash hash) const { return find(hash) >= 0; }
  // False where the hash has a block already.
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
    // Those behind the hole that would not be found across it move into it.
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
  size_t mask() const { return slots_.size() - 1; }  // their number is a power of two, at most half of them are taken
  size_t next(size_t slot) const { return (slot + 1) & mask(); }
  size_t home(BlockHash hash) const { return static_cast<size_t>((hash * 0x9e3779b97f4a7c15u) >> shift_); }
  size_t slot_of(BlockHash hash) const {  // its own, or the free one where it would be
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
