// SPDX-License-Identifier: Apache-2.0
// What a tokenizer.json says, checked and ready to encode with. Any thread; throws Error naming file and place.
#pragma once
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/bpe.h"

namespace mw::data {

struct Replacement {
  std::string from, to;  // from is not empty
};
std::string replace_all(std::string text, const std::vector<Replacement>& replacements);

struct BpeParts {
  struct Shown {
    std::string text;  // after the decoder's replacements
    int byte = -1;     // of a byte piece
  };
  std::vector<std::string> pieces;             // by id; "" where an id is unused. Not changed once `bpe` views into it
  std::vector<Shown> shown;                    // by id
  std::vector<bool> special;                   // by id
  std::unordered_map<std::string, int> added;  // pieces that the vocabulary does not name
  std::vector<Replacement> normalizer;
  TokenMatcher raw, normalized;  // added tokens, looked for before and after the normalizer
  Bpe bpe;
  int bos = -1, eos = -1, pad = -1;

  int find(std::string_view piece) const;  // -1 when absent
};

// `file` is a tokenizer.json; a tokenizer_config.json beside it may name bos, eos and pad. A missing decoder means
// Gemma's. Anything that Gemma's tokenizers do not use is refused by name.
BpeParts read_bpe_parts(const std::filesystem::path& file);

}  // namespace mw::data
