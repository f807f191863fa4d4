// SPDX-License-Identifier: Apache-2.0
// Ids of the words that a thread has encoded: a table of fixed size in which a new word replaces an older one. Text
// repeats its words, so most are found here and not merged again. One thread.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/rng.h"

namespace mw::data {

class WordCache {
 public:
  static constexpr size_t kMostBytes = 22, kMostIds = 8;  // longer words are not kept

  // `owner` identifies the tokenizer and is not 0. A word of 1 to kMostBytes bytes; empty if it is not known.
  std::span<const int> find(std::uint32_t owner, std::string_view word) {
    found_ = &slots_[hash(owner, word) & (kSlots - 1)];
    const bool known = found_->owner == owner && found_->bytes == word.size() &&
                       std::memcmp(found_->word.data(), word.data(), word.size()) == 0;
    return {found_->ids.data(), known ? found_->count : size_t{0}};
  }
  // Keeps the ids of the word of the last find().
  void keep(std::uint32_t owner, std::string_view word, std::span<const int> ids) {
    if (ids.empty() || ids.size() > kMostIds) return;
    found_->owner = owner;
    found_->bytes = static_cast<std::uint8_t>(word.size());
    found_->count = static_cast<std::uint8_t>(ids.size());
    std::copy(word.begin(), word.end(), found_->word.begin());
    std::copy(ids.begin(), ids.end(), found_->ids.begin());
  }

 private:
  static constexpr size_t kSlots = 1 << 15;
  struct alignas(64) Slot {
    std::array<int, kMostIds> ids{};
    std::uint32_t owner = 0;
    std::uint8_t bytes = 0, count = 0;
    std::array<char, kMostBytes> word{};
  };
  static_assert(sizeof(Slot) == 64);

  static std::uint64_t hash(std::uint32_t owner, std::string_view word) {
    std::uint64_t h = owner + (word.size() << 32);
    for (size_t i = 0; i < word.size(); i += 8) {
      std::uint64_t part = 0;
      std::memcpy(&part, word.data() + i, std::min<size_t>(8, word.size() - i));
      h = mix64(h ^ part);
    }
    return h;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  Slot* found_ = nullptr;
};

}  // namespace mw::data
