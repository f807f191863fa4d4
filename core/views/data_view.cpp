// SPDX-License-Identifier: Apache-2.0
#include "core/views/data_view.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/formats/huggingface/hf_weights.h"
#include "core/model/config.h"
#include "core/experiment/settings.h"

namespace mw::runs {
namespace fs = std::filesystem;
namespace {

Error missing(const std::string& what, const std::string& key, const std::string& fix) {
  return Error(
      {.id = "MISSING", .message = "no " + what + " is given", .place = key, .expected = "a path", .fix = fix});
}

model::Family family_of(const Experiment& e) {
  const fs::path folder = e.path("model.path");
  if (!folder.empty()) return formats::read_config(folder).family;
  if (e.string("data.chat") != "auto") return {};
  if (!e.string("model.id").empty()) return model::catalogue(e.string("model.id")).family;
  throw missing("model", "model.path", "set model.path to the model's folder, or choose data.chat");
}

DataRow row_of(const data::ScannedRow& scanned) {
  return {.state = scanned.state,
          .split = scanned.split,
          .format = scanned.format,
          .place = scanned.place,
          .row = scanned.example.row,
          .tokens = static_cast<std::int32_t>(scanned.example.ids.size()),
          .used = static_cast<std::int32_t>(scanned.used),
          .loss_tokens = static_cast<std::int32_t>(data::loss_tokens(scanned))};
}

void add(DataIndex& index, const data::ScannedRow& scanned, const DataRow& row) {
  count(scanned, index.report);
  if (scanned.state == data::RowState::bad) {
    if (!index.first_bad) index.first_bad = scanned.problem;
    return;
  }
  ++index.lengths[row.tokens];
  if (row.used == 0) return;
  if (row.split == data::Split::held_out)
    ++index.held_out;
  else
    index.train.push_back({row.used, row.loss_tokens});
}

DataIndex index_lengths(const DataQuestion& question) {
  DataIndex index;
  index.lengths = data::read_lengths(question.lengths);
  index.report.rows = data::stats_of(index.lengths).rows;
  index.train = sizes_of(index.lengths, question.options.max_len, question.options.overlong, kMostDataRows);
  index.report.kept = std::ssize(index.train);
  for (const auto& size : index.train) index.report.tokens += size.tokens;
  for (const auto& [tokens, rows] : index.lengths)
    if (tokens > question.options.max_len)
      (question.options.overlong == data::Overlong::drop ? index.report.dropped_long : index.report.truncated) += rows;
  return index;
}

// What tokens read like; most come many times.
class Pieces {
 public:
  struct Piece {
    std::string text;
    TokenKind kind = TokenKind::text;
  };
  Pieces(const data::Tokenizer& tokenizer, data::ChatFormat chat) : tokenizer_(tokenizer) {
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

// A file that is not there has the stamp of nothing: reading it says what is wrong.
FileStamp stamp_of(const fs::path& file) {
  FileStamp stamp;
  std::error_code ec;
  stamp.size = fs::file_size(file, ec);
  if (ec) stamp.size = 0;
  stamp.changed = fs::last_write_time(file, ec);
  if (ec) stamp.changed = {};
  return stamp;
}

bool same_data(const Experiment& a, const Experiment& b) {
  if (a.folder() != b.folder()) return false;
  const auto part = [](const Experiment& e, const char* section, const char* key) -> const Json* {
    const auto found = e.json().find(section);
    if (found == e.json().end() || !key) return found == e.json().end() ? nullptr : &*found;
    return found->is_object() && found->contains(key) ? &found->at(key) : nullptr;
  };
  const auto same = [&](const char* section, const char* key) {
    const Json *x = part(a, section, key), *y = part(b, section, key);
    return x && y ? *x == *y : x == y;
  };
  return same("data", nullptr) && same("model", nullptr) && same("train", "batch") && same("train", "seed");
}

bool DataQuestion::same_rows(const DataQuestion& other) const {
  DataQuestion mine = *this;
  mine.batches = other.batches;
  return mine == other;
}

DataQuestion data_question(const Experiment& e) {
  DataQuestion q;
  const bool rows = !e.path("data.path").empty();
  q.lengths = e.path("data.lengths");
  if (!rows && q.lengths.empty()) return q;
  q.source = rows ? DataSource::rows : DataSource::lengths;
  const train::Settings settings = data_only_settings(e, rows ? family_of(e) : model::Family{});
  q.options = settings.data;
  q.batches = train::batch_options(settings);
  q.stamp = stamp_of(rows ? q.options.path : q.lengths);
  if (!rows) return q;
  q.lengths.clear();
  q.tokenizer = e.path("model.tokenizer").empty() ? e.path("model.path") : e.path("model.tokenizer");
  if (q.tokenizer.empty())
    throw missing("tokenizer", "model.tokenizer", "set model.path to the model's folder, or model.tokenizer");
  return q;
}

DataIndex index_data(const DataQuestion& question, const data::Tokenizer* tokenizer, std::stop_token stop,
                     const data::Progress& progress, const DataRowSink& sink, std::int64_t most_rows) {
  DataIndex index;
  try {
    if (question.source == DataSource::lengths) return index_lengths(question);
    if (question.source == DataSource::none || !tokenizer) return index;
    std::int64_t seen = 0;
    scan_rows(question.options, *tokenizer, std::move(stop), progress, [&](const data::ScannedRow& scanned) {
      if (seen++ == most_rows)
        throw Error({.id = "DATA-MANY",
                     .severity = Severity::warning,
                     .message = "only the first " + std::to_string(most_rows) + " rows are looked at",
                     .file = question.options.path.string()});
      const DataRow row = row_of(scanned);
      add(index, scanned, row);
      if (sink) sink(row);
    });
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::cancelled) throw;
    index.ended = error.problem();
  }
  return index;
}

std::optional<DataEconomy> economy_of(const DataIndex& index, const DataQuestion& question) {
  if (index.train.empty()) return std::nullopt;
  data::BatchOptions options = question.batches;
  DataEconomy economy;
  economy.loss_known = question.source == DataSource::rows;
  options.packing = data::Packing::none;
  economy.plain = first_epoch(index.train, options);
  options.packing = data::Packing::pack;
  economy.packed = first_epoch(index.train, options);
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

DataDetail detail_of(const DataQuestion& question, const data::Tokenizer& tokenizer, const DataRow& row) {
  if (stamp_of(question.options.path) != question.stamp)
    throw Error({.id = "DATA-CHANGED",
                 .message = "the file has changed since it was read",
                 .file = question.options.path.string(),
                 .fix = "read it again"});
  data::ScannedRow like;
  like.state = row.state;
  like.format = row.format;
  like.place = row.place;
  like.example.row = row.row;
  const data::ScannedRow scanned = scan_again(question.options, tokenizer, like);
  DataDetail detail;
  detail.row = row_of(scanned);
  detail.problem = scanned.problem;
  const data::Example& example = scanned.example;
  const size_t n = std::min(example.ids.size(), DataDetail::kMostTokens);
  detail.tokens.reserve(n);
  Pieces pieces(tokenizer, question.options.chat);
  for (size_t i = 0; i < n; ++i) {
    const auto& [piece, kind] = pieces.of(example.ids[i]);
    detail.tokens.push_back({example.ids[i], piece, kind, example.loss[i] != 0});
  }
  return detail;
}

}  // namespace mw::runs
