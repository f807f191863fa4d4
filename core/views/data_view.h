// SPDX-License-Identifier: Apache-2.0
// Views of an experiment's training data before a run: state and length of every row, the tokens of one row, and the
// padding and packing of batches. Thread-safe.
#pragma once
#include <optional>

#include "core/base/units.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/lengths.h"
#include "core/data/dataset/scan.h"
#include "core/train/data_index.h"

namespace mw::views {

// Sizes of the first epoch without and with packing.
struct DataEconomy {
  data::EpochSize plain, packed;
  bool loss_known = true;
};
// Returns empty if there are no training rows.
std::optional<DataEconomy> economy_of(const train::DataIndex& index, const train::DataIndexRequest& request);

// Length to which rows are padded: the longest row of the batch (this engine), or data.max_len (programs compiled for
// one shape, as on TPUs).
enum class PadTo { longest, max_len };
struct PaddedShares {  // shares of all positions of an epoch; real + padding = 1, `loss` is part of `real`
  std::int64_t padded = 0;
  double real = 0, padding = 0, loss = 0;
};
PaddedShares shares_of(const data::EpochSize& epoch, PadTo pad_to);
// Returns positions per real token without packing, divided by the same with packing. Counts per real token because the
// last batch of a small epoch may repeat rows.
double packing_factor(const DataEconomy& economy, PadTo pad_to);

// Time and price per token; unknown values are empty.
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
  TokenCost padding, saved;  // cost of the padding of an unpacked epoch; cost that packing saves per epoch
};
EpochCost epoch_cost(const DataEconomy& economy, PadTo pad_to, const TokenPrice& price);

enum class TokenKind { text, special };
struct DataToken {
  int id = 0;
  std::string piece;  // vocabulary entry
  TokenKind kind = TokenKind::text;
  bool loss = false;
};
struct DataDetail {
  data::DataRow row;
  std::vector<DataToken> tokens;  // at most kMostTokens, including those after `row.used`
  Problem problem;                // error of a bad row
  static constexpr size_t kMostTokens = 200'000;
};
// Reads the row again. Throws Error if it cannot be read or the file has changed since it was indexed.
DataDetail detail_of(const train::DataIndexRequest& request, const data::Tokenizer& tokenizer,
                     const data::DataRow& row);

}  // namespace mw::views
