// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding with byte fallback over one segment of normalised text (transformers convert_slow_tokenizer.py,
// GemmaConverter), and the leftmost-longest matcher of added tokens. Built once, then read from any thread.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/flat_map.h"
#include "core/data/tokenizer/piece_ids.h"

namespace mw::data {

enum class Unknowns { fuse, keep_each };
enum class WholeSegment { merge, look_up_first };  // look_up_first: the file's ignore_merges

class Bpe {
 public:
  struct Merge {
    int rank = 0, id = 0;
  };
  PieceIds ids;                   // of the model's vocabulary
  FlatMap<Merge> merges;          // pair_key(left, right)
  std::array<int, 256> byte_ids;  // <0xXX>, -1 where absent or byte fallback is off
  int unknown = -1;               // -1: unknown characters vanish
  Unknowns unknowns = Unknowns::fuse;
  WholeSegment whole = WholeSegment::merge;

  Bpe() { byte_ids.fill(-1); }
  // Appends the ids. O(n log n): a heap of candidate merges, lowest rank first, leftmost on ties.
  void encode(std::string_view segment, std::vector<int>& out) const;

 private:
  void characters(std::string_view segment, std::vector<int>& out) const;
  void merge(std::vector<int>& symbols) const;
};

// Finds added tokens: leftmost, longest first.
class TokenMatcher {
 public:
  void add(std::string_view text, int id);  // text not empty
  bool empty() const { return nodes_ == 1; }

  struct Match {
    size_t begin, end;
    int id;  // -1: none; then begin == end == text.size()
  };
  Match next(std::string_view text, size_t from) const;

 private:
  FlatMap<int> children_;              // node << 8 | byte -> node
  std::vector<int> ends_ = {-1};       // id of the token that ends at a node
  std::array<bool, 256> starts_ = {};  // bytes a token can start with
  int nodes_ = 1;
};

}  // namespace mw::data
