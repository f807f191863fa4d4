// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding with byte fallback (transformers convert_slow_tokenizer.py, GemmaConverter), and the matcher of
// added tokens. Thread-safe once built.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/flat_map.h"
#include "core/data/tokenizer/junctions.h"
#include "core/data/tokenizer/piece_ids.h"

namespace mw::data {

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
