// SPDX-License-Identifier: Apache-2.0
// Hash map from 64-bit keys to small values: a flat table with linear probing, for tables that are read or changed very
// often (the merges of a tokenizer, the prefix cache). Thread-safe for reading.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/rng.h"

namespace mw {

template <class Value>
class FlatMap {
 public:
  static constexpr std::uint64_t kEmpty = ~0ull;  // not a valid key

  void reserve(size_t entries) {
    size_t slots = 16;
    while (slots < 2 * (entries + 1)) slots *= 2;
    if (slots <= slots_.size()) return;
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.key != kEmpty) slots_[locate(s.key)] = s;
  }
  void set(std::uint64_t key, Value value) {
    reserve(used_ + 1);
    Slot& slot = slots_[locate(key)];
    used_ += slot.key == kEmpty;
    slot = {key, value};
  }
  // Returns false and changes nothing if the key is present.
  bool insert(std::uint64_t key, Value value) {
    reserve(used_ + 1);
    Slot& slot = slots_[locate(key)];
    if (slot.key == key) return false;
    slot = {key, value};
    ++used_;
    return true;
  }
  void erase(std::uint64_t key) {
    if (slots_.empty()) return;
    size_t hole = locate(key);
    if (slots_[hole].key == kEmpty) return;
    --used_;
    // Entries after the hole whose probe sequence crosses it move into it.
    for (size_t at = next(hole); slots_[at].key != kEmpty; at = next(at)) {
      if (((at - home(slots_[at].key)) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = {};
  }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
  }
  const Value* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[locate(key)];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }
  bool contains(std::uint64_t key) const { return find(key) != nullptr; }
  size_t size() const { return used_; }
  template <class Use>
  void each(const Use& use) const {  // use(key, value), in no particular order
    for (const Slot& s : slots_)
      if (s.key != kEmpty) use(s.key, s.value);
  }

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };
  size_t mask() const { return slots_.size() - 1; }  // the size is a power of two; at most half of the slots are used
  size_t next(size_t slot) const { return (slot + 1) & mask(); }
  size_t home(std::uint64_t key) const { return mix64(key) & mask(); }
  size_t locate(std::uint64_t key) const {  // the slot of the key, or the free slot where it would be inserted
    size_t slot = home(key);
    while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = next(slot);
    return slot;
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace mw
