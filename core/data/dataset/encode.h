// SPDX-License-Identifier: Apache-2.0
// Encodes one record as token ids with a loss mask. Thread-safe.
#pragma once
#include "core/data/dataset/examples.h"
#include "core/data/dataset/record.h"

namespace mw::data {

// Ignores max_len. Throws TOK-1 if the text contains the beginning-of-text token, TOK-2 if the chat template does not
// fit the record or the tokenizer.
Example encode_record(const Record& record, const DatasetOptions& options, const Tokenizer& tokenizer);

}  // namespace mw::data
