// SPDX-License-Identifier: Apache-2.0
// Reads an HF tokenizer.json: the vocabulary and merges straight into arrays (they are hundreds of thousands of
// entries), the rest as a small JSON document. Any thread; throws Error naming file and place.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.h"

namespace mw::data {

inline constexpr int kMaxVocabulary = 1 << 21;  // eight times Gemma's; a larger id is a broken file

// Ids are an index: a few may be unused, but one far beyond the number of pieces is a broken file (and would cost
// memory).
constexpr size_t largest_id(size_t pieces) {
  return 2 * pieces + 1024;
}

// The merges in order of rank, in one text: half a million small strings would take longer to allocate than to read.
class MergeList {
 public:
  struct Merge {
    std::string_view left, right, joined;
  };
  void add(std::string_view left, std::string_view right) {
    starts_.push_back({text_.size(), left.size(), right.size()});
    text_.append(left).append(right);
  }
  size_t size() const { return starts_.size(); }
  Merge operator[](size_t i) const {
    const auto [at, left, right] = starts_[i];
    const std::string_view joined = std::string_view(text_).substr(at, left + right);
    return {joined.substr(0, left), joined.substr(left), joined};
  }

 private:
  struct Start {
    size_t at, left, right;
  };
  std::string text_;
  std::vector<Start> starts_;
};

struct TokenizerFile {
  Json rest;  // everything but model.vocab and model.merges
  bool has_vocabulary = false, has_merges = false;
  std::vector<std::string> pieces;  // by id; "" where an id is unused. A piece may have two ids here
  std::vector<bool> used;           // ids that the vocabulary names
  MergeList merges;
};

// `text` is the file's content, `source` its path for messages. Any JSON object will do: other files of a tokenizer
// folder with large objects are read with it too.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source);

}  // namespace mw::data
