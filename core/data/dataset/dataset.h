// SPDX-License-Identifier: Apache-2.0
// Loads a data file as tokenised examples with a loss mask. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"

namespace mw::data {

using mw::to_string;

using options::Format;
using options::LossOn;
using options::OnError;
using options::Overlong;

struct DatasetOptions : options::DataRows {
  ChatTemplate chat = ChatFormat::gemma3;
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
  Format format = Format::text;
  std::vector<Problem> problems;  // of skipped rows, at most 100
};

struct Dataset {
  std::vector<Example> train, eval;
  DatasetReport report;
};

using Progress = std::function<void(long done, long total)>;
// Throws if the file cannot be read, if a row is malformed (OnError::stop; names the line), or if no row is usable.
Dataset load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop = {},
                     const Progress& progress = {});

// Two rows that are equal or have the same prompt.
struct RowPair {
  std::int64_t row = 0, same_as = 0;  // 0-based, as Example::row
  bool operator==(const RowPair&) const = default;
};

// Of the rows that drops_duplicates leaves.
struct OverlapReport {
  static constexpr size_t kMostPairs = 10;     // listed of each kind, by row
  std::int64_t train = 0, held_out = 0;        // compared rows
  std::int64_t uncompared = 0;                 // rows after the first RowOverlap::kMostRows
  std::int64_t repeated = 0;                   // training rows that are equal to an earlier one
  std::int64_t held_out_in_train = 0;          // held-out rows that are equal to a training row
  std::int64_t held_out_prompts_in_train = 0;  // further held-out rows whose prompt a training row has
  std::vector<RowPair> repeats{}, leaks{}, prompt_leaks{};
  bool operator==(const OverlapReport&) const = default;
};

// Contents of a data file. Its rows are read one after the other and not kept.
struct DatasetSummary {
  DatasetReport report;
  OverlapReport overlap;
  std::string prompt, answer;  // of the first training row; empty for plain text
};
// Throws as load_dataset(). The counts of `report` include duplicates, whatever options.drops_duplicates is.
DatasetSummary summarize_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop = {},
                                 const Progress& progress = {});

}  // namespace mw::data
