// SPDX-License-Identifier: Apache-2.0
// The data of an experiment as training will see it, for looking at before a run: every row with its state and length,
// the tokens of one row, lengths together, and what batches of them hold. Plain values and functions, any thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "core/base/units.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/lengths.h"
#include "core/data/dataset/scan.h"
#include "core/experiment/experiment.h"

namespace mw::runs {

inline constexpr std::int64_t kMostDataRows = 4'000'000;  // that are looked at; a larger file is cut off, and says so

// As far as a file can be told from an earlier state of it.
struct FileStamp {
  std::uintmax_t size = 0;
  std::filesystem::file_time_type changed{};
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::filesystem::path& file);  // of nothing where there is no such file

enum class DataSource { none, rows, lengths };  // data.path, else data.lengths

// All that the answer depends on, frozen.
struct DataQuestion {
  DataSource source = DataSource::none;
  data::DatasetOptions options;
  data::BatchOptions batches;
  std::filesystem::path tokenizer, lengths;
  FileStamp stamp{};  // of the file that is read
  bool operator==(const DataQuestion&) const = default;
  bool same_rows(const DataQuestion& other) const;  // batches may differ
};
// False: an edit between the two may change the question.
bool same_data(const Experiment& a, const Experiment& b);
// Reads the model's config (for the chat template), no data. Throws Error for what is missing or wrong.
DataQuestion data_question(const Experiment& experiment);

struct DataRow {
  data::RowState state = data::RowState::ok;
  data::Split split = data::Split::train;
  data::Format format = data::Format::text;
  data::RowPlace place{};
  std::int64_t row = 0;                                // 0-based; -1: a line of running text that is no row
  std::int32_t tokens = 0, used = 0, loss_tokens = 0;  // before any cut; that training takes; of those, or of all
};
using DataRowSink = std::function<void(const DataRow&)>;

struct DataIndex {
  data::DatasetReport report;            // as a load of the file counts that skips bad rows; without problems
  std::int64_t held_out = 0;             // of the rows kept
  data::LengthCounts lengths;            // of every readable row, before any cut
  std::vector<data::ExampleSize> train;  // rows to train on, in the file's order
  std::optional<Problem> first_bad;      // where training stops unless bad rows are skipped
  std::optional<Problem> ended;          // why reading ended before the file did
};
// One pass over the file, or over the histogram (then no rows and no loss). A stop throws Error of kind cancelled; what
// else ends the reading stands in the answer.
DataIndex index_data(const DataQuestion& question, const data::Tokenizer* tokenizer, std::stop_token stop = {},
                     const data::Progress& progress = {}, const DataRowSink& sink = {},
                     std::int64_t most_rows = kMostDataRows);

// The first epoch of the rows to train on, one by one and packed. Nothing where there are none.
struct DataEconomy {
  data::EpochSize plain, packed;
  bool loss_known = true;
};
std::optional<DataEconomy> economy_of(const DataIndex& index, const DataQuestion& question);

// How long a row is when it is computed: as the longest of its batch (this engine), or data.max_len (programs compiled
// for one shape, as on TPUs).
enum class PadTo { longest, max_len };
struct PaddedShares {  // of all positions of an epoch; real + padding = 1, loss is a part of real
  std::int64_t padded = 0;
  double real = 0, padding = 0, loss = 0;
};
PaddedShares shares_of(const data::EpochSize& epoch, PadTo pad_to);
// Positions for each real token without packing / with it (a small epoch may be filled up more often in one of them).
double packing_factor(const DataEconomy& economy, PadTo pad_to);

// What processing so many padded tokens takes; each is known only with what it needs.
struct TokenPrice {
  std::optional<Seconds> per_padded_token;
  std::optional<Usd> per_hour;
};
struct TokenCost {
  std::optional<Seconds> seconds;
  std::optional<Usd> usd;
};
TokenCost cost_of(std::int64_t padded_tokens, const TokenPrice& price);
struct EpochCost {
  TokenCost padding, saved;  // of an epoch row by row: its padding, and what packing spares of the epoch
};
EpochCost epoch_cost(const DataEconomy& economy, PadTo pad_to, const TokenPrice& price);

enum class TokenKind { text, special };
struct DataToken {
  int id = 0;
  std::string piece;  // as in the vocabulary
  TokenKind kind = TokenKind::text;
  bool loss = false;
};
struct DataDetail {
  DataRow row;
  std::vector<DataToken> tokens;  // at most kMostTokens, those beyond `row.used` too
  Problem problem;                // of a bad row
  static constexpr size_t kMostTokens = 200'000;
};
// Reads that row again. Throws Error, also where the file has changed since.
DataDetail detail_of(const DataQuestion& question, const data::Tokenizer& tokenizer, const DataRow& row);

}  // namespace mw::runs
