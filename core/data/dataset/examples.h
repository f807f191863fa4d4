// SPDX-License-Identifier: Apache-2.0
// Tokenised examples with a loss mask, and how a data file becomes them. Plain values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "core/base/event.h"
#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"

namespace mw::data {

using mw::to_string;

struct DatasetOptions : options::DataRows {
  ChatTemplate chat = options::ChatFormat::gemma3;
  std::uint64_t seed = 0;
  bool operator==(const DatasetOptions&) const = default;
};

// ids.size() == loss.size(); loss[i] != 0: token i is a target (predicted from i-1). ids[0] is bos.
struct Example {
  std::int64_t row = 0;  // 0-based row of the files, one after another
  std::vector<int> ids;
  std::vector<std::uint8_t> loss;
  std::string prompt, answer;  // rendered prompt and expected answer, for samples; empty for plain text
};

struct DatasetReport {
  std::int64_t rows = 0, kept = 0, dropped_long = 0, truncated = 0, skipped_bad = 0, no_loss = 0;
  std::int64_t dropped_repeated = 0, dropped_held_out = 0;  // equal to an earlier training row; to a held-out row
  std::int64_t tokens = 0, loss_tokens = 0;
  options::Format format = options::Format::text;
  std::vector<Problem> problems;  // of skipped rows, at most 100
};

}  // namespace mw::data
