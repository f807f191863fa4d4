// SPDX-License-Identifier: Apache-2.0
// Hash map from pieces to ids with open addressing: loading a tokenizer.json looks up three pieces for each of half a
// million merges. Thread-safe for reading.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace mw::data {

class PieceIds {
 public:
  void reserve(size_t pieces) {
    size_t slots = 16;
    while (slots < 2 * (pieces + 1)) slots *= 2;
    if (slots <= slots_.size()) return;
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.id >= 0) slots_[locate(s.piece, hash(s.piece))] = s;
  }
  // Keeps a view of `piece`, which must outlive the map. Returns false if the piece is already present.
  bool insert(std::string_view piece, int id) {
    reserve(used_ + 1);
    const std::uint64_t h = hash(piece);
    Slot& slot = slots_[locate(piece, h)];
    if (slot.id >= 0) return false;
    slot = {piece, static_cast<std::uint32_t>(h >> 32), id};
    ++used_;
    return true;
  }
  int find(std::string_view piece) const {  // -1 if unknown
    return slots_.empty() ? -1 : slots_[locate(piece, hash(piece))].id;
  }

 private:
  struct Slot {
    std::string_view piece;
    std::uint32_t tag = 0;  // upper bits of the hash, to avoid most string comparisons
    int id = -1;
  };
  static std::uint64_t hash(std::string_view piece) { return std::hash<std::string_view>()(piece); }
  size_t locate(std::string_view piece, std::uint64_t h) const {
    const size_t mask = slots_.size() - 1;
    const auto tag = static_cast<std::uint32_t>(h >> 32);
    size_t i = h & mask;
    while (slots_[i].id >= 0 && (slots_[i].tag != tag || slots_[i].piece != piece)) i = (i + 1) & mask;
    return i;
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace mw::data
