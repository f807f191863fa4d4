// SPDX-License-Identifier: Apache-2.0
// The two kinds of tokenizer file behind load_tokenizer(). Both throw Error naming file and place.
#pragma once
#include <filesystem>
#include <memory>

#include "core/data/tokenizer/tokenizer.h"

namespace mw::data {

std::unique_ptr<Tokenizer> load_bpe_tokenizer(const std::filesystem::path& file);
std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(const std::filesystem::path& file);

}  // namespace mw::data
