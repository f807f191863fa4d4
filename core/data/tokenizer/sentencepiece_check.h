// SPDX-License-Identifier: Apache-2.0
// Looks over a SentencePiece .model before the library gets it: well-formed, and with the settings of Gemma's models.
// The library trusts some of a file's contents (its normalisation tables) and prints about others. Any thread.
#pragma once
#include <string>
#include <string_view>

namespace mw::data {

// Throws Error naming the file and what is malformed or unsupported.
void check_sentencepiece_model(std::string_view content, const std::string& file);

}  // namespace mw::data
