// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer.h"

#include "core/base/error.h"
#include "core/data/bpe_tokenizer.h"

namespace mw::data {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  std::error_code ec;
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path, ec)) {
    file = path / "tokenizer.json";
    if (!std::filesystem::exists(file, ec)) file = path / "tokenizer.model";
    if (!std::filesystem::exists(file, ec))
      throw Error({.id = "TOKENIZER",
                   .message = "the folder has no tokenizer",
                   .file = path.string(),
                   .expected = "tokenizer.json or tokenizer.model"});
  }
  return file.extension() == ".model" ? load_sentencepiece_tokenizer(file) : load_bpe_tokenizer(file);
}

}  // namespace mw::data
