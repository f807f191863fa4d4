// SPDX-License-Identifier: Apache-2.0
// Tokenizers: tokenizer.json of Hugging Face (BPE with byte fallback) and SentencePiece .model files. Immutable after
// loading, thread-safe.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mw::data {

enum class Specials { keep, drop };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::vector<int> encode(std::string_view text) const = 0;  // does not add bos or eos
  virtual std::string decode(std::span<const int> ids, Specials specials = Specials::drop) const = 0;
  virtual int size() const = 0;
  virtual std::string piece(int id) const = 0;         // as written in the file
  virtual int find(std::string_view piece) const = 0;  // -1 if unknown
  int bos() const { return bos_; }
  int eos() const { return eos_; }
  int pad() const { return pad_; }
  // Identifies the content of its files; empty if it was not loaded from files.
  const std::string& fingerprint() const { return fingerprint_; }

 protected:
  friend std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);
  std::string fingerprint_;
  int bos_ = 2, eos_ = 1, pad_ = 0;
};

// `path` is a folder with tokenizer.json or tokenizer.model, or one of these files. Throws TOKENIZER.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

// Checks that the content of a SentencePiece .model file is well-formed and has the settings of Gemma's models, before
// the library parses it: the library trusts the normalization tables of the file. Throws TOKENIZER.
void check_sentencepiece_model(std::string_view content, const std::string& file);

}  // namespace mw::data
