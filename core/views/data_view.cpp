// SPDX-License-Identifier: Apache-2.0
#include "core/views/data_view.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace mw::views {
namespace {

// Caches the text of tokens, because most tokens occur many times.
class Pieces {
 public:
  struct Piece {
    std::string text;
    TokenKind kind = TokenKind::text;
  };
  Pieces(const data::Tokenizer& tokenizer, const data::ChatTemplate& chat) : tokenizer_(tokenizer) {
    for (const std::string_view marker : {data::start_of_turn(chat), data::end_of_turn(chat)})
      if (!marker.empty()) markers_.push_back(tokenizer.find(marker));
  }
  const Piece& of(int id) {
    const auto [at, added] = seen_.try_emplace(id);
    if (added) at->second = {tokenizer_.piece(id), is_special(id) ? TokenKind::special : TokenKind::text};
    return at->second;
  }

 private:
  bool is_special(int id) const {
    if (std::find(markers_.begin(), markers_.end(), id) != markers_.end()) return true;
    const std::span one(&id, 1);
    return tokenizer_.decode(one, data::Specials::drop).empty() &&
           !tokenizer_.decode(one, data::Specials::keep).empty();
  }
  const data::Tokenizer& tokenizer_;
  std::vector<int> markers_;
  std::unordered_map<int, Piece> seen_;
};

}  // namespace

std::optional<DataEconomy> economy_of(const train::DataIndex& index, const train::DataIndexRequest& request) {
  if (index.train.empty()) return std::nullopt;
  data::BatchOptions options = request.batches;
  DataEconomy economy;
  economy.loss_known = request.source == train::DataSource::rows;
  options.packing = data::Packing::none;
  economy.plain = first_epoch_size(index.train, options);
  options.packing = data::Packing::pack;
  economy.packed = first_epoch_size(index.train, options);
  return economy;
}

PaddedShares shares_of(const data::EpochSize& epoch, PadTo pad_to) {
  PaddedShares s;
  s.padded = pad_to == PadTo::longest ? epoch.padded : epoch.fixed;
  if (s.padded == 0) return s;
  const auto all = static_cast<double>(s.padded);
  s.real = static_cast<double>(epoch.tokens) / all;
  s.padding = static_cast<double>(s.padded - epoch.tokens) / all;
  s.loss = static_cast<double>(epoch.loss_tokens) / all;
  return s;
}

double packing_factor(const DataEconomy& economy, PadTo pad_to) {
  const double plain = shares_of(economy.plain, pad_to).real, packed = shares_of(economy.packed, pad_to).real;
  return plain > 0 ? packed / plain : 1;
}

TokenCost cost_of(std::int64_t padded_tokens, const TokenPrice& price) {
  TokenCost cost;
  if (!price.per_padded_token) return cost;
  cost.seconds = *price.per_padded_token * static_cast<double>(padded_tokens);
  if (price.per_hour) cost.usd = *price.per_hour * (cost.seconds->value / 3600);
  return cost;
}

EpochCost epoch_cost(const DataEconomy& economy, PadTo pad_to, const TokenPrice& price) {
  const std::int64_t positions = shares_of(economy.plain, pad_to).padded;
  const double packed = static_cast<double>(positions) / packing_factor(economy, pad_to);
  return {cost_of(positions - economy.plain.tokens, price),
          cost_of(positions - static_cast<std::int64_t>(std::llround(packed)), price)};
}

DataDetail detail_of(const train::DataIndexRequest& request, const data::Tokenizer& tokenizer,
                     const data::DataRow& row) {
  if (train::stamp_of(request.options) != request.stamp)
    throw Error("DATA-CHANGED", "the file has changed since it was read",
                {.file = request.options.path.string(), .fix = "read it again"});
  data::ScannedRow like;
  like.state = row.state;
  like.format = row.format;
  like.position = row.place;
  like.example.row = row.row;
  const data::ScannedRow scanned = rescan_row(request.options, tokenizer, like);
  DataDetail detail;
  detail.row = is_duplicate(row.state) ? row : data::data_row(scanned);
  detail.problem = scanned.problem;
  const data::Example& example = scanned.example;
  const size_t n = std::min(example.ids.size(), DataDetail::kMostTokens);
  detail.tokens.reserve(n);
  Pieces pieces(tokenizer, request.options.chat);
  for (size_t i = 0; i < n; ++i) {
    const auto& [piece, kind] = pieces.of(example.ids[i]);
    detail.tokens.push_back({example.ids[i], piece, kind, example.loss[i] != 0});
  }
  return detail;
}

}  // namespace mw::views
