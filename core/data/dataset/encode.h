// SPDX-License-Identifier: Apache-2.0
// One record to token ids with a loss mask. Any thread.
#pragma once
#include "core/data/dataset/dataset.h"
#include "core/data/dataset/record.h"

namespace mw::data {

// Not cut to max_len. Throws Error (TOK-1, TOK-2) for what the template or the tokenizer cannot express.
Example encode_record(const Record& record, const DatasetOptions& options, const Tokenizer& tokenizer);

}  // namespace mw::data
