// SPDX-License-Identifier: Apache-2.0
// Parses a tokenizer.json: vocabulary and merges (hundreds of thousands of entries) directly into arrays, the rest as a
// JSON document. Errors are TOKENIZER and name file and place. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::data {

inline constexpr int kMaxVocabulary = 1 << 21;  // eight times Gemma's

// Ids index arrays, so an id far beyond the number of pieces is rejected; some ids may be unused.
constexpr size_t largest_id(size_t pieces) {
  return 2 * pieces + 1024;
}

// The merges by rank, stored in one string, because allocating half a million small strings would dominate loading.
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
  Json rest;  // everything except model.vocab and model.merges
  bool has_vocabulary = false, has_merges = false;
  std::vector<std::string> pieces;  // by id; "" for unused ids. Not checked for pieces with two ids
  std::vector<bool> used;           // by id: is in the vocabulary
  MergeList merges;
};

// Throws TOKENIZER; `found` is shortened.
[[noreturn]] void fail_tokenizer(const std::string& source, const std::string& message, const std::string& place,
                                 const std::string& found, const std::string& expected);

// For a valid tokenizer that is not like Gemma's.
[[noreturn]] void unsupported_tokenizer(const std::string& source, const std::string& place, const std::string& found,
                                        const std::string& expected);

// `source` names the file in errors. Accepts any JSON object; tokenizer_config.json is parsed with it as well.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source);

}  // namespace mw::data
