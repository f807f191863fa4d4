// SPDX-License-Identifier: Apache-2.0
// Hash map from 64-bit keys to small values with open addressing, for the merge table: half a million entries, read
// several times per character. Thread-safe for reading.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/rng.h"

namespace mw::data {

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
  const Value* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[locate(key)];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }
  size_t size() const { return used_; }

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };
  size_t locate(std::uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = mix64(key) & mask;
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & mask;
    return i;
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

constexpr std::uint64_t pair_key(int a, int b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

}  // namespace mw::data
