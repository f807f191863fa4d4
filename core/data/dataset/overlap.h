// SPDX-License-Identifier: Apache-2.0
// Finds training rows that occur more than once, and held-out rows that training sees. Rows are compared by hashes of
// their tokens and of where these carry loss: a report by 64 bits, with 32 bytes a row; dropped rows by 95 bits, with
// 16 bytes a row.
#pragma once
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/data/dataset/dataset.h"
#include "core/data/dataset/row_cache.h"
#include "core/data/dataset/token_rows.h"

namespace mw::data {

// Hash of tokens and of where they carry loss.
struct RowHash {
  std::uint64_t value = 0;
  void add(int id, bool carries_loss);
};

// Not thread-safe.
class RowOverlap {
 public:
  static constexpr size_t kMostRows = 8'000'000;
  // `drops_duplicates`: the report is about the rows that DatasetOptions::drops_duplicates leaves.
  explicit RowOverlap(bool drops_duplicates = false) : drops_duplicates_(drops_duplicates) {}
  // The tokens that training uses of a row. Ignores rows that it does not use.
  void add(const DataRow& row, std::span<const int> ids, std::span<const std::uint8_t> loss);
  OverlapReport report();

 private:
  struct Row {
    std::uint64_t all = 0, prompt = 0;  // hashes; prompt 0: none
    std::int64_t number = 0;
    bool held_out = false, matched = false, dropped = false;
  };
  bool drops_duplicates_;
  std::vector<Row> rows_;
  std::int64_t uncompared_ = 0;
};

// Reads all tokens. Throws cancelled(), and DATA-CACHE for damaged tokens.
OverlapReport overlap_of(const TokenRows& rows, const DatasetOptions& options, const std::stop_token& stop = {});

// A training row that DatasetOptions::drops_duplicates drops.
struct DuplicateRow {
  std::uint32_t index = 0;
  RowState state = RowState::repeated;  // or in_held_out, also if the row is equal to an earlier training row
};

// Finds the duplicates among used rows. Not thread-safe.
class DuplicateRows {
 public:
  // `most_rows`: if it is known, the memory does not grow beyond them.
  explicit DuplicateRows(size_t most_rows = 0) { rows_.reserve(most_rows); }
  // Indices ascend. Throws DATA-MANY for an index above 2^32 - 1.
  void add(std::int64_t index, Split split, std::span<const int> ids, std::span<const std::uint8_t> loss);
  // By index. Leaves this object empty.
  std::vector<DuplicateRow> find();

 private:
  struct Row {
    std::uint64_t hash = 0;
    std::uint32_t hash_and_split = 0;  // 31 bits of a second hash; lowest bit 0: held out
    std::uint32_t index = 0;
  };
  static_assert(sizeof(Row) == 16);
  std::vector<Row> rows_;
};

// Gives all rows in order, as options.drops_duplicates leaves them: duplicates have their state and are not used. Reads
// all tokens first, then calls `sink`, with 16 bytes of memory for each row and 8 for each duplicate. Throws as
// overlap_of().
void give_unique_rows(const TokenRows& rows, const DatasetOptions& options, const std::stop_token& stop,
                      const CountProgress& progress, const DataRowSink& sink);

}  // namespace mw::data
