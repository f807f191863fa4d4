// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding with byte fallback (transformers convert_slow_tokenizer.py, GemmaConverter), and the matcher of
// added tokens. Thread-safe once built.
#pragma once
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/flat_map.h"
#include "core/base/rng.h"

namespace mw::data {

// The places where text can be cut without a change of its token ids. A merge joins two pieces at the last byte of the
// left and the first character of the right one; where no merge joins these two, no token spans the place, and the
// parts are merged independently. In Gemma's vocabularies that is before almost every word. Thread-safe once built.
class Junctions {
 public:
  void add(std::string_view left, std::string_view right) {  // pieces of a merge; not empty
    joins_[byte(left, left.size() - 1)].set(first_character(right, 0));
  }
  // Whether no merge joins the characters before and after the offset `at`, 0 < at < text.size().
  bool can_cut(std::string_view text, size_t at) const {
    const unsigned char next = byte(text, at);
    return (next & 0xc0) != 0x80 && !joins_[byte(text, at - 1)].test(first_character(text, at));
  }

 private:
  static constexpr unsigned char kSpace = 0xff;  // U+2581, apart from other characters that start with the same byte
  static unsigned char byte(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }
  static unsigned char first_character(std::string_view text, size_t at) {
    const unsigned char first = byte(text, at);
    return first == 0xe2 && text.substr(at).starts_with("\u2581") ? kSpace : first;
  }

  std::array<std::bitset<256>, 256> joins_;  // by the byte before
};

// Hash map from pieces to ids with open addressing: loading a tokenizer.json looks up three pieces for each of half a
// million merges. Thread-safe for reading.
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

// Ids of the words that a thread has encoded: a table of fixed size in which a new word replaces an older one. Text
// repeats its words, so most are found here and not merged again. One thread.
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

constexpr std::uint64_t pair_key(int a, int b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

enum class Unknowns { fuse, keep_each };
enum class WholeSegment { merge, look_up_first };  // look_up_first: "ignore_merges" in tokenizer.json

class Bpe {
 public:
  struct Merge {
    int rank = 0, id = 0;
  };
  PieceIds ids;                   // ids of the vocabulary's pieces
  FlatMap<Merge> merges;          // by pair_key(left, right)
  Junctions junctions;            // of the merges
  std::array<int, 256> byte_ids;  // ids of <0xXX>; -1: missing, or byte fallback is off
  int unknown = -1;               // id for unknown characters; -1: they are dropped
  Unknowns unknowns = Unknowns::fuse;
  WholeSegment whole = WholeSegment::merge;

  Bpe() { byte_ids.fill(-1); }
  // Lets encode() cut segments, if every symbol stands for its own characters. Call it once all members are set.
  void allow_cuts();
  // Appends the ids of one segment of normalised text. The segment is cut where no token can span, and words that the
  // thread has encoded before are looked up. O(n log n) for the longest part: merges come from a heap, lowest rank
  // first, leftmost on ties.
  void encode(std::string_view segment, std::vector<int>& out) const;

 private:
  void encode_part(std::string_view part, std::vector<int>& out) const;
  void characters(std::string_view segment, std::vector<int>& out) const;
  void merge_few(std::vector<int>& symbols, size_t first) const;
  void merge(std::vector<int>& symbols) const;

  std::uint32_t owner_ = 0;  // of the words in the thread's cache; 0: segments are not cut
};

// Finds added tokens in text: the leftmost match, and the longest of those.
class TokenMatcher {
 public:
  void add(std::string_view text, int id);  // `text` must not be empty
  bool empty() const { return nodes_ == 1; }

  struct Match {
    size_t begin, end;
    int id;  // -1: no match; then begin == end == text.size()
  };
  Match next(std::string_view text, size_t from) const;

 private:
  FlatMap<int> children_;              // node << 8 | byte -> node
  std::vector<int> ends_ = {-1};       // id of the token that ends at a node, or -1
  std::array<bool, 256> starts_ = {};  // first bytes of tokens
  int nodes_ = 1;
};

}  // namespace mw::data
