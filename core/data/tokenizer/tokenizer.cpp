// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/tokenizer.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/tokenizer/bpe_tokenizer.h"
#include "core/data/tokenizer/sentencepiece_tokenizer.h"

namespace mw::data {

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
  return file.extension() == ".model" ? load_sentencepiece_tokenizer(file) : load_bpe_tokenizer(file);
}

}  // namespace mw::data
