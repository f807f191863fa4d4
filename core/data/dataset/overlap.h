// SPDX-License-Identifier: Apache-2.0
// Finds training rows that occur more than once, and held-out rows that training sees. Rows are compared by 64-bit
// hashes of their tokens and of where these carry loss, 32 bytes a row.
#pragma once
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/data/dataset/token_rows.h"

namespace mw::data {

// Not thread-safe.
class RowOverlap {
 public:
  static constexpr size_t kMostRows = 8'000'000;
  // The tokens that training uses of a row. Ignores rows that it does not use.
  void add(const DataRow& row, std::span<const int> ids, std::span<const std::uint8_t> loss);
  OverlapReport report();

 private:
  struct Row {
    std::uint64_t all = 0, prompt = 0;  // hashes; prompt 0: none
    std::int64_t number = 0;
    bool held_out = false, matched = false;
  };
  std::vector<Row> rows_;
  std::int64_t uncompared_ = 0;
};

// Reads all tokens. Throws cancelled(), and DATA-CACHE for damaged tokens.
OverlapReport overlap_of(const TokenRows& rows, const DatasetOptions& options, const std::stop_token& stop = {});

}  // namespace mw::data
