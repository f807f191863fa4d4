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

// text in a .txt file: the file is one running text, cut into examples of max_len tokens (bos included), each token in
// one example, lines ending in \n. All other formats: one example per row.
enum class Format { automatic, prompt_completion, messages, sharegpt, alpaca, text };
// Tokens that carry loss. completion: the row's completion, or its last answer. assistant: every answer. all: every
// token except bos and the turn markers. An answer includes its end-of-turn marker (eos with ChatFormat::none). In text
// rows, all tokens except bos carry loss.
enum class LossOn { completion, assistant, all };
enum class Overlong { drop, truncate };
enum class OnError { stop, skip };

struct DatasetOptions {
  std::filesystem::path path;       // a file, or a pattern of several: see data_files()
  std::filesystem::path eval_path;  // held-out rows, as `path`; empty: eval_fraction holds rows out
  Format format = Format::automatic;
  std::map<std::string, std::string> columns;  // prompt, completion, text, messages, system, input -> column name
  ChatTemplate chat = ChatFormat::gemma3;
  LossOn loss = LossOn::completion;
  Overlong overlong = Overlong::drop;
  OnError on_error = OnError::stop;
  int max_len = 1024;  // tokens, bos and end markers included
  // Drops training rows that are equal to an earlier training row or to a held-out row: the same used tokens, with loss
  // on the same of them.
  bool drops_duplicates = false;
  double eval_fraction = 0;  // of the rows, chosen by a hash of (seed, row); appending rows keeps the split
  std::uint64_t seed = 0;
  bool operator==(const DatasetOptions&) const = default;
};
// Share of the rows of options.path that is held out.
inline double random_share_held_out(const DatasetOptions& options) {
  return options.eval_path.empty() ? options.eval_fraction : 0;
}
inline bool holds_rows_out(const DatasetOptions& options) {
  return !options.eval_path.empty() || options.eval_fraction > 0;
}

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

template <>
inline constexpr mw::EnumNames<6> mw::kEnumNames<mw::data::Format>{
    "auto", "prompt_completion", "messages", "sharegpt", "alpaca", "text"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::data::LossOn>{"completion", "assistant", "all"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::data::Overlong>{"drop", "truncate"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::data::OnError>{"stop", "skip"};
