// SPDX-License-Identifier: Apache-2.0
// Tokenizer read from a SentencePiece .model file. Errors are TOKENIZER and name file and place.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/data/tokenizer/tokenizer.h"

namespace mw::data {

std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(const std::filesystem::path& file);

// Checks that the content is well-formed and has the settings of Gemma's models, before the library parses it: the
// library trusts the normalization tables of the file.
void check_sentencepiece_model(std::string_view content, const std::string& file);

}  // namespace mw::data
