// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/tokenizer.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/data/tokenizer/bpe_tokenizer.h"
#include "core/data/tokenizer/sentencepiece_tokenizer.h"

namespace mw::data {
namespace {

// tokenizer_config.json may name the special tokens.
std::string fingerprint_of(const std::filesystem::path& file) {
  const std::filesystem::path config = file.parent_path() / "tokenizer_config.json";
  Sha256 sum;
  sum.add_field(file.extension().string()).add_field(hex(sha256_of_file(file).sha256));
  if (path_exists(config)) sum.add_field(hex(sha256_of_file(config).sha256));
  return hex(sum.finish());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  if (is_folder(path)) {
    file = path / "tokenizer.json";
    if (!path_exists(file)) file = path / "tokenizer.model";
    if (!path_exists(file))
      throw Error({.id = "TOKENIZER",
                   .message = "the folder contains no tokenizer",
                   .file = path.string(),
                   .expected = "tokenizer.json or tokenizer.model"});
  }
  auto tokenizer = file.extension() == ".model" ? load_sentencepiece_tokenizer(file) : load_bpe_tokenizer(file);
  tokenizer->fingerprint_ = fingerprint_of(file);
  return tokenizer;
}

}  // namespace mw::data
