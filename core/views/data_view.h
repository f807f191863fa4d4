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
#include "core/planning/data_index.h"

namespace mw::views {

// The first epoch of the rows to train on, one by one and packed. Nothing where there are none.
struct DataEconomy {
  data::EpochSize plain, packed;
  bool loss_known = true;
};
std::optional<DataEconomy> economy_of(const planning::DataIndex& index, const planning::DataIndexRequest& request);

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
  planning::DataRow row;
  std::vector<DataToken> tokens;  // at most kMostTokens, those beyond `row.used` too
  Problem problem;                // of a bad row
  static constexpr size_t kMostTokens = 200'000;
};
// Reads that row again. Throws Error, also where the file has changed since.
DataDetail detail_of(const planning::DataIndexRequest& request, const data::Tokenizer& tokenizer,
                     const planning::DataRow& row);

}  // namespace mw::views
