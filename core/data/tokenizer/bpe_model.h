// SPDX-License-Identifier: Apache-2.0
// Reads a BPE tokenizer from tokenizer.json. Errors are TOKENIZER and name file and place. Thread-safe.
#pragma once
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/bpe.h"

namespace mw::data {

struct Replacement {
  std::string from, to;  // `from` is not empty
};
std::string replace_all(std::string text, const std::vector<Replacement>& replacements);

struct BpeModel {
  struct DecodedPiece {
    std::string text;  // after the decoder's replacements
    int byte = -1;     // value of a byte piece <0xXX>
  };
  std::vector<std::string> pieces;             // by id; "" for unused ids. Must not change: `bpe` holds views into it
  std::vector<DecodedPiece> decoded;           // by id
  std::vector<bool> special;                   // by id
  std::unordered_map<std::string, int> added;  // added tokens that are not in the vocabulary
  std::vector<Replacement> normalizer;
  TokenMatcher raw, normalized;  // added tokens that are matched before and after the normalizer
  Bpe bpe;
  int bos = -1, eos = -1, pad = -1;

  int find(std::string_view piece) const;  // -1 if unknown
};

// A tokenizer_config.json in the same folder may name bos, eos and pad. The default decoder is Gemma's. Options that
// Gemma's tokenizers do not use are errors.
BpeModel read_bpe_model(const std::filesystem::path& file);

}  // namespace mw::data
