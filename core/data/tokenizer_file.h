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

struct TokenizerFile {
  Json rest;  // everything but model.vocab and model.merges
  bool has_vocabulary = false, has_merges = false;
  std::vector<std::string> pieces;                          // by id; "" where an id is unused
  std::vector<bool> used;                                   // ids that the vocabulary names
  std::vector<std::pair<std::string, std::string>> merges;  // in order of rank
};

// `text` is the file's content, `source` its path for messages. Any JSON object will do: other files of a tokenizer
// folder with large objects are read with it too.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source);

}  // namespace mw::data
