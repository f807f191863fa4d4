// SPDX-License-Identifier: Apache-2.0
// Loads a data file as tokenised examples with a loss mask. Thread-safe.
#pragma once
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "core/data/dataset/examples.h"

namespace mw::data {

struct Dataset {
  std::vector<Example> train, eval;
  DatasetReport report;
};

// Throws if the file cannot be read, if a row is malformed (options::OnError::stop; names the line), or if no row is
// usable.
Dataset load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop = {},
                     const CountProgress& progress = {});

// Two rows that are equal or have the same prompt.
struct RowPair {
  std::int64_t row = 0, same_as = 0;  // 0-based, as Example::row
  bool operator==(const RowPair&) const = default;
};

// Repeated rows, and held-out rows that training sees, among the rows that drops_duplicates leaves.
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
                                 const CountProgress& progress = {});

}  // namespace mw::data
