// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/overlap.h"

#include <algorithm>
#include <tuple>

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

}  // namespace

void RowOverlap::add(const DataRow& row, std::span<const int> ids, std::span<const std::uint8_t> loss) {
  if (row.used == 0) return;
  if (rows_.size() == kMostRows) {
    ++uncompared_;
    return;
  }
  Row added{.number = row.row, .held_out = row.split == Split::held_out};
  const auto used = static_cast<size_t>(row.used);
  bool in_prompt = true;
  for (size_t i = 0; i < used; ++i) {
    if (in_prompt && loss[i] != 0) {
      in_prompt = false;
      if (i > 1) added.prompt = added.all | 1;  // bos alone is no prompt
    }
    added.all = mix64(added.all ^ (static_cast<std::uint64_t>(ids[i]) * 2 + (loss[i] != 0)));
  }
  rows_.push_back(added);
}

OverlapReport RowOverlap::report() {
  OverlapReport report{.uncompared = uncompared_};
  for_each_group(rows_, &Row::all, [&](auto first, auto last) {
    for (auto row = first; row != last; ++row) {
      ++(row->held_out ? report.held_out : report.train);
      if (row == first || first->held_out) continue;
      row->matched = row->held_out;
      ++(row->held_out ? report.held_out_in_train : report.repeated);
      (row->held_out ? report.leaks : report.repeats).push_back({row->number, first->number});
    }
  });
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
  RowOverlap overlap;
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

}  // namespace mw::data
