// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/overlap.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/rng.h"

namespace mw::data {
namespace {

// Keeps the first pairs by row.
void keep_first_pairs(std::vector<RowPair>& pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const RowPair& a, const RowPair& b) { return a.row < b.row; });
  pairs.resize(std::min(pairs.size(), OverlapReport::kMostPairs));
}

// Calls visit(first, last) for each run of rows with the same hash.
template <class Row, class Visit>
void for_each_group(std::vector<Row>& rows, std::uint64_t Row::*hash, const Visit& visit) {
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return std::tie(a.*hash, a.held_out, a.number) < std::tie(b.*hash, b.held_out, b.number);
  });
  for (auto first = rows.begin(); first != rows.end();) {
    const auto last = std::find_if(first, rows.end(), [&](const Row& row) { return row.*hash != (*first).*hash; });
    visit(first, last);
    first = last;
  }
}

// The first value of the second hash of a row: with another one than the first hash, rows that agree in one of them by
// chance differ in the other.
constexpr std::uint64_t kSecondHash = 0x6465647570;

}  // namespace

void RowHash::add(int id, bool carries_loss) {
  value = mix64(value ^ (static_cast<std::uint64_t>(id) * 2 + carries_loss));
}

void RowOverlap::add(const DataRow& row, std::span<const int> ids, std::span<const std::uint8_t> loss) {
  if (row.used == 0) return;
  if (rows_.size() == kMostRows) {
    ++uncompared_;
    return;
  }
  Row added{.number = row.row, .held_out = row.split == Split::held_out};
  const auto used = static_cast<size_t>(row.used);
  bool in_prompt = true;
  RowHash hash;
  for (size_t i = 0; i < used; ++i) {
    if (in_prompt && loss[i] != 0) {
      in_prompt = false;
      if (i > 1) added.prompt = hash.value | 1;  // bos alone is no prompt
    }
    hash.add(ids[i], loss[i] != 0);
  }
  added.all = hash.value;
  rows_.push_back(added);
}

OverlapReport RowOverlap::report() {
  OverlapReport report{.uncompared = uncompared_};
  for_each_group(rows_, &Row::all, [&](auto first, auto last) {
    const bool in_held_out = std::prev(last)->held_out;
    for (auto row = first; row != last; ++row) {
      if (drops_duplicates_) {
        row->dropped = !row->held_out && (in_held_out || row != first);
        if (!row->dropped) ++(row->held_out ? report.held_out : report.train);
        continue;
      }
      ++(row->held_out ? report.held_out : report.train);
      if (row == first || first->held_out) continue;
      row->matched = row->held_out;
      ++(row->held_out ? report.held_out_in_train : report.repeated);
      (row->held_out ? report.leaks : report.repeats).push_back({row->number, first->number});
    }
  });
  std::erase_if(rows_, [](const Row& row) { return row.dropped; });
  for_each_group(rows_, &Row::prompt, [&](auto first, auto last) {
    if (first->prompt == 0 || first->held_out) return;
    for (auto row = first; row != last; ++row) {
      if (!row->held_out || row->matched) continue;
      ++report.held_out_prompts_in_train;
      report.prompt_leaks.push_back({row->number, first->number});
    }
  });
  keep_first_pairs(report.repeats);
  keep_first_pairs(report.leaks);
  keep_first_pairs(report.prompt_leaks);
  return report;
}

OverlapReport overlap_of(const TokenRows& rows, const DatasetOptions& options, const std::stop_token& stop) {
  RowOverlap overlap(options.drops_duplicates);
  std::vector<int> ids;
  std::vector<std::uint8_t> loss;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    if (i % 4096 == 0 && stop.stop_requested()) throw cancelled("comparing the rows");
    const DataRow row = rows.row(i, options);
    if (row.used == 0) continue;
    rows.read(i, row.used, ids, loss);
    overlap.add(row, ids, loss);
  }
  return overlap.report();
}

void DuplicateRows::add(std::int64_t index, Split split, std::span<const int> ids, std::span<const std::uint8_t> loss) {
  if (index > std::numeric_limits<std::uint32_t>::max())
    throw Error(
        "DATA-MANY", "the data has too many rows to find duplicates",
        {.place = "data.dedup", .expected = "at most 2^32 rows", .fix = "set data.dedup to false, or split the data"});
  RowHash first, second{kSecondHash};
  for (size_t i = 0; i < ids.size(); ++i) {
    first.add(ids[i], loss[i] != 0);
    second.add(ids[i], loss[i] != 0);
  }
  rows_.push_back({.hash = first.value,
                   .hash_and_split = static_cast<std::uint32_t>(second.value >> 32 << 1) | (split == Split::train),
                   .index = static_cast<std::uint32_t>(index)});
}

std::vector<DuplicateRow> DuplicateRows::find() {
  std::vector<Row> rows = std::exchange(rows_, {});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {  // held-out rows first among equal ones
    return std::tie(a.hash, a.hash_and_split, a.index) < std::tie(b.hash, b.hash_and_split, b.index);
  });
  std::vector<DuplicateRow> found;
  const Row* first = nullptr;  // of the equal rows
  for (const Row& row : rows) {
    if (!first || first->hash != row.hash || first->hash_and_split >> 1 != row.hash_and_split >> 1)
      first = &row;
    else if (row.hash_and_split & 1)
      found.push_back({row.index, first->hash_and_split & 1 ? RowState::repeated : RowState::in_held_out});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  return found;
}

void give_unique_rows(const TokenRows& rows, const DatasetOptions& options, const std::stop_token& stop,
                      const CountProgress& progress, const DataRowSink& sink) {
  const auto tick = [&](std::int64_t done) {
    if (done % 4096 != 0) return;
    if (stop.stop_requested()) throw cancelled("comparing the rows");
    if (progress) progress(static_cast<long>(done), static_cast<long>(rows.size()));
  };
  DuplicateRows duplicates(static_cast<size_t>(rows.size()));
  std::vector<int> ids;
  std::vector<std::uint8_t> loss;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    tick(i);
    const DataRow row = rows.row(i, options);
    if (row.used == 0) continue;
    rows.read(i, row.used, ids, loss);
    duplicates.add(i, row.split, ids, loss);
  }
  const std::vector<DuplicateRow> found = duplicates.find();
  auto next = found.begin();
  const std::vector<Problem> problems = rows.problems(options);
  size_t bad = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    tick(i);
    DataRow row = rows.row(i, options);
    if (next != found.end() && next->index == i) {
      row.state = next++->state;
      row.used = 0;
      row.loss_tokens = static_cast<std::int32_t>(rows.record(i).loss_tokens);
    }
    const bool known = row.state == RowState::bad && bad < problems.size();
    sink(row, known ? &problems[bad++] : nullptr);
  }
}

}  // namespace mw::data
