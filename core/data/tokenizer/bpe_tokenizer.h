// SPDX-License-Identifier: Apache-2.0
// BPE tokenizer read from tokenizer.json.
#pragma once
#include <filesystem>
#include <memory>

#include "core/data/tokenizer/tokenizer.h"

namespace mw::data {

// Throws TOKENIZER naming file and place.
std::unique_ptr<Tokenizer> load_bpe_tokenizer(const std::filesystem::path& file);

}  // namespace mw::data
